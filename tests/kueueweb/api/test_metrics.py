"""The gauges, read as Prometheus reads them."""

from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from accounts.models import Cluster
from gpus.models import Device, Node
from scheduler.models import Lease
from tests.api_client import SchemaClient
from tests.factories import make_cluster_queue
from tests.users import EPOCH


def test_gauges(vera: SchemaClient, cluster: Cluster) -> None:
    make_cluster_queue(cluster, "research", {"v100": {"cpu": (4500, 2000, None)}}, cohort_name="company")
    node = Node.objects.create(cluster=cluster, name="n1", created_at=EPOCH)
    Device.objects.create(
        node=node, uuid="GPU-1", index=0, slots=10, memory_mib=100, used_slots=2, external_slots=1, type="V100"
    )
    Lease.objects.create(cluster=cluster, epoch=0, renewed_at=timezone.now())
    response = vera.get("/metrics")
    assert response.headers["Content-Type"].startswith("text/plain")
    samples = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(response.content.decode())
        for sample in family.samples
    }
    cell = (
        ("cluster", "default"),
        ("cluster_queue", "research"),
        ("cohort", "company"),
        ("flavor", "v100"),
        ("resource", "cpu"),
    )
    assert samples["kueue_cluster_queue_nominal_quota", *cell] == 4.5
    assert samples["kueue_cluster_queue_borrowing_limit", *cell] == 2
    assert samples["kueue_cluster_queue_lending_limit", *cell] == float("inf")
    assert samples["kueueweb_scheduler_leads", ("cluster", "default")] == 1
    device = (("cluster", "default"), ("node", "n1"), ("type", "V100"))
    assert samples["kueueweb_device_used_slots", *device] == 3
    assert samples["kueue_cohort_subtree_quota", ("cluster", "default"), ("cohort", "company"), *cell[3:]] == 4.5


def test_not_for_tenants(bob: SchemaClient, db: None) -> None:
    assert bob.get("/metrics").status_code == 403
    assert SchemaClient().get("/metrics").status_code == 401
