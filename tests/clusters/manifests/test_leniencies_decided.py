"""What is taken although Kueue would refuse it has the effect that its warning tells of."""

import pytest

from accounts.models import Cluster
from queues.models import Workload
from scheduler.leader.engine import Engine
from tests import manifest_texts as texts
from tests.manifest_texts import Apply, joined

pytestmark = pytest.mark.django_db(transaction=True)


def status_of(cluster: Cluster) -> tuple[str, str]:
    Engine(cluster, "test").run()
    return Workload.objects.values_list("status", "message").get()


def queue(cell: str, covered: str = "[cpu, memory]") -> str:
    groups = f"[{{coveredResources: {covered}, flavors: [{{name: cpus, resources: [{cell}]}}]}}]"
    return joined(
        texts.kueue("ResourceFlavor", "cpus"),
        texts.kueue("ClusterQueue", "main", f"{{namespaceSelector: {{}}, resourceGroups: {groups}}}"),
        texts.local_queue(),
    )


def asking(requests: str) -> str:
    return texts.workload().replace("requests: {cpu: 1}", f"requests: {{{requests}}}")


def test_a_covered_resource_without_a_quota_is_not_limited(cluster: Cluster, apply: Apply) -> None:
    apply(joined(queue("{name: cpu, nominalQuota: 1}"), asking("cpu: 1, memory: 900Gi")))
    assert status_of(cluster)[0] == "Admitted"
    pod_set = Workload.objects.get().pod_sets.get()
    assert pod_set.flavors == {"cpu": "cpus", "memory": "cpus"}


def test_the_resources_beside_it_are_limited(cluster: Cluster, apply: Apply) -> None:
    apply(joined(queue("{name: cpu, nominalQuota: 1}"), asking("cpu: 2, memory: 900Gi")))
    status, message = status_of(cluster)
    assert status == "Pending"
    assert "cpu" in message
    assert "memory" not in message


@pytest.mark.parametrize(("cpu", "status"), [(1, "Admitted"), (2, "Pending")])
def test_limits_without_a_cohort_have_no_effect(cluster: Cluster, apply: Apply, cpu: int, status: str) -> None:
    cell = "{name: cpu, nominalQuota: 1, borrowingLimit: 5, lendingLimit: 0}"
    apply(joined(queue(cell, "[cpu]"), asking(f"cpu: {cpu}")))
    assert status_of(cluster)[0] == status
