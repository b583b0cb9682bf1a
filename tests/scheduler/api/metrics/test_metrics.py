"""/metrics, read as Prometheus reads it: names, types and labels, and what was counted by whichever leader."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.conf import LazySettings
from django.db.models import F
from django.utils import timezone
from prometheus_client import Metric

from accounts.models import Cluster
from gpus.models import ContainerSample, Device, DeviceAllocation, DeviceSample
from queues.models import ClusterQueue, Job, LocalQueue, Pod, Workload
from queues.services.workloads import hold, record_finished, record_pods_ready, record_stopped, release
from scheduler.api.metrics.counts import read_counts
from scheduler.housekeeping.metric_counts import join_counts
from scheduler.leader.engine import Engine
from scheduler.models import Lease, MetricCount
from tests.api_client import SchemaClient
from tests.engines import NOW, send_and_wait, start
from tests.factories import START, make_cluster, make_cluster_queue, make_cohort, make_node, make_workload
from tests.scheduler.api.metrics.comparison import check_families, families_of, not_given
from tests.scheduler.api.metrics.hami_families import HAMI_FAMILIES
from tests.scheduler.api.metrics.kueue_families import KUEUE_FAMILIES

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def cluster(cluster: Cluster) -> Cluster:
    """With the namespace `team`."""
    return make_cluster(cluster.name)


Samples = Mapping[tuple[str, frozenset[tuple[str, str]]], float]


def scrape(client: SchemaClient) -> tuple[dict[str, Metric], Samples]:
    """The families by name, and every sample by its name and labels, without `cluster`, `replica_role` and `zone`."""
    response = client.get("/metrics")
    assert response.headers["Content-Type"].startswith("text/plain")
    families = families_of(response.content.decode())
    return families, {
        (sample.name, _without_constants(sample.labels)): sample.value
        for family in families.values()
        for sample in family.samples
    }


def _without_constants(labels: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    assert labels["cluster"] == "default" if "cluster" in labels else True
    return frozenset((name, value) for name, value in labels.items() if name not in {"cluster", "replica_role", "zone"})


def value(samples: Samples, name: str, /, **labels: str) -> float:
    return samples[name, frozenset(labels.items())]


def a_life(cluster: Cluster) -> None:
    """One is preempted, runs again, and is preempted again by the same one, which ran ready and was held meanwhile."""
    make_cohort(cluster, "company")
    make_cohort(cluster, "lab", parent_name="company")
    make_cluster_queue(
        cluster, quotas={"default-flavor": {"cpu": 4000}}, cohort_name="lab", within_cluster_queue="LowerPriority"
    )
    low = make_workload(cluster, "low", {"cpu": "3"}, priority_class_name="low", priority=-1)
    low.job = Job.objects.create(
        cluster=cluster, kind="Job", namespace="team", name="low", manifest={}, created_at=START - timedelta(seconds=3)
    )
    low.save()
    start(cluster).run()
    make_workload(cluster, "high", {"cpu": "2"}, priority=100)
    engine = start(cluster)  # another leader
    engine.run()
    record_stopped(cluster, [("team", "low")])
    engine.run()
    record_pods_ready(cluster, [("team", "high")])
    hold(cluster, [("team", "high")], actor="bob")
    engine.run()
    record_stopped(cluster, [("team", "high")])
    start(cluster).run()  # and another
    release(cluster, [("team", "high")], actor="bob")


@pytest.mark.parametrize("legacy", [False, True])
def test_a_life_fills_kueues_families(
    vera: SchemaClient, cluster: Cluster, settings: LazySettings, legacy: bool
) -> None:
    settings.METRICS_LEGACY_HAMI_NAMES = legacy
    a_life(cluster)
    record_finished(cluster, [("team", "low")])
    families, _ = scrape(vera)
    empty = {
        "kueue_admission_cycle_preemption_skips", "kueue_admission_checks_wait_time_seconds",
        "kueue_local_queue_admission_checks_wait_time_seconds", "kueue_local_queue_admission_fair_sharing_usage",
        "kueue_replaced_workload_slices_total", "kueue_workload_creation_latency_seconds",
    }  # fmt: skip
    check_families(families, empty, legacy=legacy)


def test_a_queue_has_its_numbers_from_its_first_moment(vera: SchemaClient, cluster: Cluster) -> None:
    make_cluster_queue(cluster, quotas={"default-flavor": {"cpu": 4000, "memory": 2**30}})
    families, _ = scrape(vera)
    cells = {("default-flavor", "cpu"): 0.0, ("default-flavor", "memory"): 0.0}
    pending = families["kueue_cluster_queue_resource_pending"].samples
    assert {sample.labels["resource"]: sample.value for sample in pending} == {"cpu": 0.0, "memory": 0.0}
    for name in ("kueue_local_queue_resource_reservation", "kueue_local_queue_resource_usage"):
        found = families[name].samples
        assert {(each.labels["flavor"], each.labels["resource"]): each.value for each in found} == cells
        assert {each.labels["name"] for each in found} == {"queue"}


def test_each_family_that_is_not_given_has_a_reason_and_is_one_of_theirs() -> None:
    assert set(not_given()) <= set(KUEUE_FAMILIES) | set(HAMI_FAMILIES)
    assert all(len(reason) > 20 for reason in not_given().values())


def test_counters_say_what_was_decided_under_all_leaders(vera: SchemaClient, cluster: Cluster) -> None:
    a_life(cluster)
    engine = start(cluster)
    engine.run()
    record_finished(cluster, [("team", "low")])
    _, samples = scrape(vera)
    low = {"cluster_queue": "main", "priority_class": "low"}
    high = {"cluster_queue": "main", "priority_class": ""}
    assert value(samples, "kueue_quota_reserved_workloads_total", **low) == 2
    assert value(samples, "kueue_admitted_workloads_total", **low) == 2
    assert value(samples, "kueue_admitted_workloads_total", **high) == 1
    by = {"namespace": "team", "name": "queue", "priority_class": "low"}
    assert value(samples, "kueue_local_queue_admitted_workloads_total", **by) == 2
    preempted = {"reason": "Preempted", "underlying_cause": ""}
    assert value(samples, "kueue_evicted_workloads_total", **low, **preempted) == 2
    assert value(samples, "kueue_evicted_workloads_once_total", **low, **preempted) == 1
    held = {"reason": "Deactivated", "underlying_cause": ""}
    assert value(samples, "kueue_evicted_workloads_total", **high, **held) == 1
    assert value(samples, "kueue_evicted_workloads_once_total", **high, **held) == 1
    by_whom = {"preempting_cluster_queue": "main", "reason": "InClusterQueue"}
    assert value(samples, "kueue_preempted_workloads_total", **by_whom) == 2
    assert value(samples, "kueue_finished_workloads_total", **low) == 1
    assert value(samples, "kueue_execution_time_seconds_count", **low) == 1
    assert value(samples, "kueue_pods_ready_to_evicted_time_seconds_count", cluster_queue="main", **held) == 1
    assert value(samples, "kueue_cohort_subtree_admitted_workloads_total", cohort="company", priority_class="low") == 2
    assert value(samples, "kueue_admission_attempts_total", result="success") >= 3


def test_waits_begin_when_a_workload_was_queued_and_fill_the_buckets(vera: SchemaClient, cluster: Cluster) -> None:
    make_cluster_queue(cluster)
    make_workload(cluster, "one")  # queued at START, decided 1,000 s later
    start(cluster).run()
    families, samples = scrape(vera)
    labels = {"cluster_queue": "main", "priority_class": ""}
    assert value(samples, "kueue_admission_wait_time_seconds_sum", **labels) == 1000
    assert value(samples, "kueue_admission_wait_time_seconds_bucket", **labels, le="640") == 0
    assert value(samples, "kueue_admission_wait_time_seconds_bucket", **labels, le="1280") == 1
    assert value(samples, "kueue_admission_wait_time_seconds_bucket", **labels, le="+Inf") == 1
    family = families["kueue_admission_wait_time_seconds"]
    bounds = [sample.labels["le"] for sample in family.samples if sample.name.endswith("_bucket")]
    assert bounds == ["1", "2.5", "5", "10", "20", "40", "80", "160", "320", "640", "1280", "2560", "5120", "10240",
                      "20480", "40960", "+Inf"]  # fmt: skip


def test_a_value_on_a_bound_belongs_to_its_bucket(vera: SchemaClient, cluster: Cluster) -> None:
    make_cluster_queue(cluster)
    make_workload(cluster, "one", created_at=START + timedelta(seconds=1000 - 320))
    start(cluster).run()
    _, samples = scrape(vera)
    labels = {"cluster_queue": "main", "priority_class": ""}
    assert value(samples, "kueue_admission_wait_time_seconds_bucket", **labels, le="160") == 0
    assert value(samples, "kueue_admission_wait_time_seconds_bucket", **labels, le="320") == 1


def test_the_series_of_a_queue_go_with_it(vera: SchemaClient, cluster: Cluster) -> None:
    a_life(cluster)
    make_cluster_queue(cluster, "other", local_queue="others")
    make_workload(cluster, "elsewhere", queue_name="others")
    start(cluster).run()
    Workload.objects.all().delete()
    ClusterQueue.objects.filter(name="main").delete()
    start(cluster).run()
    for _ in range(2):
        _, samples = scrape(vera)
        assert names(samples, "cluster_queue", "main") | names(samples, "preempting_cluster_queue", "main") == set()
        assert "kueue_admitted_workloads_total" in names(samples, "cluster_queue", "other")
        of_local_queue = names(samples, "name", "queue")
        assert {"kueue_local_queue_admitted_workloads_total", "kueue_local_queue_evicted_workloads_total"} <= (
            of_local_queue
        )
        join_counts()
    LocalQueue.objects.filter(name="queue").delete()
    _, samples = scrape(vera)
    assert names(samples, "name", "queue") == set()
    join_counts()
    assert {row.labels[0] for row in MetricCount.objects.filter(metric="admitted")} == {"other"}
    assert not MetricCount.objects.filter(metric="preempted").exists()


@pytest.mark.parametrize("joined", [False, True])
def test_a_queue_that_is_made_anew_begins_at_zero(vera: SchemaClient, cluster: Cluster, joined: bool) -> None:
    a_life(cluster)
    _, samples = scrape(vera)
    assert "kueue_admitted_workloads_total" in names(samples, "cluster_queue", "main")
    assert "kueue_local_queue_admitted_workloads_total" in names(samples, "name", "queue")
    if joined:
        join_counts()
    Workload.objects.all().delete()
    LocalQueue.objects.all().delete()
    ClusterQueue.objects.all().delete()
    make_cluster_queue(cluster)
    _, samples = scrape(vera)
    mine = {("cluster_queue", "main"), ("preempting_cluster_queue", "main"), ("name", "queue")}
    counted = {name: number for (name, labels), number in samples.items() if labels & mine and number}
    assert [name for name in counted if name.endswith(("_total", "_count", "_sum", "_bucket"))] == []


def test_only_the_first_start_counts_as_the_time_until_ready(vera: SchemaClient, cluster: Cluster) -> None:
    make_cluster_queue(cluster)
    make_workload(cluster, "one")
    start(cluster).run()
    key = [("team", "one")]
    record_pods_ready(cluster, key)
    record_pods_ready(cluster, key, ready=False, recovering=True)
    record_pods_ready(cluster, key, recovering=True)
    _, samples = scrape(vera)
    for family in ("kueue_ready_wait_time_seconds_count", "kueue_admitted_until_ready_wait_time_seconds_count"):
        assert value(samples, family, cluster_queue="main", priority_class="") == 1


def test_a_family_without_samples_is_not_named(vera: SchemaClient, cluster: Cluster) -> None:
    families, _ = scrape(vera)
    assert "kueue_build_info" in families
    assert {name for name, family in families.items() if name.startswith("kueue_") and not family.samples} == set()


def test_the_share_of_a_queue_outlives_it_as_long_as_its_leader(vera: SchemaClient, cluster: Cluster) -> None:
    """Kueue clears each family of a deleted ClusterQueue but this one."""
    make_cluster_queue(cluster)
    seconds = 0.0
    engine = Engine(cluster, "test", clock=lambda: NOW, steady=lambda: seconds, send=send_and_wait)
    engine.run()
    ClusterQueue.objects.all().delete()
    for _ in range(2):
        seconds += 60
        engine.run()
        _, samples = scrape(vera)
        assert names(samples, "cluster_queue", "main") == {"kueue_cluster_queue_weighted_share"}
    make_cluster_queue(cluster, local_queue="", cohort_name="lab")
    seconds += 60
    engine.run()
    _, samples = scrape(vera)
    shares = [dict(labels) for name, labels in samples if name == "kueue_cluster_queue_weighted_share"]
    assert shares == [{"cluster_queue": "main", "cohort": "lab"}]


def names(samples: Samples, label: str, of: str) -> set[str]:
    """The families that have a sample of the queue."""
    return {name for name, labels in samples if (label, of) in labels}


def test_joining_changes_nothing_that_is_shown(vera: SchemaClient, cluster: Cluster) -> None:
    a_life(cluster)
    before = {key: found for key, found in scrape(vera)[1].items() if "_total" in key[0] or "_seconds_" in key[0]}
    rows = MetricCount.objects.count()
    join_counts()
    join_counts()
    after = {key: found for key, found in scrape(vera)[1].items() if "_total" in key[0] or "_seconds_" in key[0]}
    assert after == before
    assert MetricCount.objects.count() < rows


def test_sums_are_exact_in_whatever_order_rows_are_joined(cluster: Cluster) -> None:
    make_cluster_queue(cluster)
    labels = ["main", "team", "main", ""]

    def add(*totals: float) -> None:
        for total in totals:
            MetricCount.objects.create(cluster_id=cluster.pk, metric="ready", labels=labels, count=1, total=total)

    def seconds() -> Decimal:
        return sum((row.seconds for row in read_counts()["ready"]), Decimal())

    add(0.1, 0.2, 0.3)
    assert seconds() == Decimal("0.6")
    join_counts()
    add(0.7, 123_456.789_012)
    join_counts()
    assert seconds() == Decimal("123458.089012")


def test_a_batch_that_is_refused_counts_nothing_but_its_refusal(vera: SchemaClient, cluster: Cluster) -> None:
    make_cluster_queue(cluster)
    one = make_workload(cluster, "one")

    def meanwhile() -> None:
        Workload.objects.filter(pk=one.pk).update(priority=F("priority") + 1)

    start(cluster, meanwhile=meanwhile).run()
    _, samples = scrape(vera)
    assert value(samples, "kueue_admitted_workloads_total", cluster_queue="main", priority_class="") == 1
    assert value(samples, "kueueweb_refused_batches_total") == 1


def test_gauges_of_queues(vera: SchemaClient, cluster: Cluster) -> None:
    make_cluster_queue(cluster, "research", {"v100": {"cpu": (4500, 2000, None)}}, cohort_name="company")
    make_workload(cluster, "runs", {"cpu": "4"})
    make_workload(cluster, "waits", {"cpu": "3"}, priority=-1)
    start(cluster).run()
    Lease.objects.update(renewed_at=None)  # nobody leads: the numbers are those of the rows
    _, samples = scrape(vera)
    cell = {"cluster_queue": "research", "cohort": "company", "flavor": "v100", "resource": "cpu"}
    assert value(samples, "kueue_cluster_queue_nominal_quota", **cell) == 4.5
    assert value(samples, "kueue_cluster_queue_borrowing_limit", **cell) == 2
    assert value(samples, "kueue_cluster_queue_lending_limit", **cell) == math.inf
    assert value(samples, "kueue_cluster_queue_resource_reservation", **cell) == 4
    assert value(samples, "kueue_cluster_queue_resource_usage", **cell) == 4
    queue = {"cluster_queue": "research"}
    assert value(samples, "kueue_unadmitted_workloads", **queue, reason="WaitingForQuota", underlying_cause="") == 1
    assert value(samples, "kueue_cluster_queue_status", **queue, status="active") == 1
    assert value(samples, "kueue_cluster_queue_status", **queue, status="pending") == 0
    assert value(samples, "kueue_local_queue_status", name="queue", namespace="team", active="True") == 1
    local = {"name": "queue", "namespace": "team", "flavor": "v100", "resource": "cpu"}
    assert value(samples, "kueue_local_queue_resource_usage", **local) == 4
    assert value(samples, "kueue_cohort_subtree_admitted_active_workloads", cohort="company") == 1
    assert value(samples, "kueue_cohort_info", cohort="company", parent_cohort="", root_cohort="company") == 1
    assert value(samples, "kueueweb_scheduler_leads") == 0
    assert value(samples, "kueueweb_queue_lag_seconds") == 0


def test_what_the_leader_counts_is_in_the_next_scrape(vera: SchemaClient, cluster: Cluster) -> None:
    make_cluster_queue(cluster)
    for name in ("big", "bigger"):
        make_workload(cluster, name, {"cpu": "11"})
    start(cluster).run()
    _, samples = scrape(vera)
    assert value(samples, "kueueweb_scheduler_leads") == 1
    local = {"name": "queue", "namespace": "team"}
    assert value(samples, "kueue_local_queue_pending_workloads", **local, status="inadmissible") == 2
    assert value(samples, "kueue_local_queue_pending_workloads", **local, status="active") == 0
    assert value(samples, "kueue_pending_scheduling_hashes", cluster_queue="main", status="inadmissible") == 1


class TestDevices:
    """Under HAMi's names, with its labels."""

    DEVICE: Mapping[str, Any] = {"node": "n1", "device_uuid": "n1-0", "device_index": "0", "device_type": "V100"}

    @pytest.fixture
    def device(self, cluster: Cluster) -> Device:
        node = make_node(cluster, "n1", [{"type": "V100", "used_slots": 1, "used_memory_mib": 4000}])
        device = node.devices.get()
        workload = make_workload(cluster, "one")
        DeviceAllocation.objects.create(
            cluster=cluster, node=node, device=device, device_uuid=device.uuid, workload=workload, namespace="team",
            pod_name="one-0", memory_mib=4000, cores_percent=30, created_at=START,
        )  # fmt: skip
        return device

    def test_what_is_granted(self, vera: SchemaClient, device: Device) -> None:
        _, samples = scrape(vera)
        assert value(samples, "hami_gpu_memory_limit_bytes", **self.DEVICE) == 16_000 * 2**20
        assert value(samples, "hami_gpu_shared_count", **self.DEVICE) == 1
        assert value(samples, "hami_node_gpu_memory_allocated_ratio", **self.DEVICE) == 0.25
        pod = {"namespace": "team", "node": "n1", "pod": "one-0", "container_index": "0", "device_uuid": "n1-0"}
        assert value(samples, "hami_vgpu_memory_allocated_bytes", **pod) == 4000 * 2**20
        assert value(samples, "hami_vgpu_core_allocated_ratio", **pod) == 30

    def test_what_is_used_as_long_as_the_reading_is_fresh(self, vera: SchemaClient, device: Device) -> None:
        pod = {"namespace": "team", "pod_name": "one-0", "container": "main"}
        now = timezone.now()
        DeviceSample.objects.create(device=device, at=now, memory_used_mib=100)
        ContainerSample.objects.create(device=device, at=now, last_kernel_seconds=7, **pod)
        old = now - timedelta(minutes=5)
        ContainerSample.objects.create(device=device, at=old, memory_used_mib=5, **pod)
        families, samples = scrape(vera)
        assert value(samples, "hami_host_gpu_memory_used_bytes", **self.DEVICE) == 100 * 2**20
        container = {
            "namespace": "team", "pod": "one-0", "container": "main", "vdevice_index": "0", "device_uuid": "n1-0"
        }  # fmt: skip
        assert value(samples, "hami_container_last_kernel_elapsed_seconds", **container) == 7
        assert not families["hami_vgpu_memory_used_bytes"].samples

    def test_what_a_container_may_use(self, vera: SchemaClient, device: Device) -> None:
        """Its slices of one device are one limit, as its monitor says it."""
        held = {"cluster": device.node.cluster, "node": device.node, "device": device, "device_uuid": device.uuid}
        for memory in (3000, 1000):
            DeviceAllocation.objects.create(
                **held, namespace="team", pod_name="one-0", container="main", memory_mib=memory, cores_percent=0,
                workload=make_workload(device.node.cluster, f"of-{memory}"), created_at=START,
            )  # fmt: skip
        _, samples = scrape(vera)
        labels = {"namespace": "team", "pod": "one-0", "container": "main", "vdevice_index": "0", "device_uuid": "n1-0"}
        assert value(samples, "hami_vgpu_memory_limit_bytes", **labels) == 4000 * 2**20

    def test_a_decided_slice_has_the_name_of_its_pod(self, vera: SchemaClient, device: Device) -> None:
        """Two pods of one workload on one device are two series, and a pod that replaces another has its slice."""
        workload = make_workload(device.node.cluster, "two")
        for replica, memory in enumerate((1000, 2000)):
            DeviceAllocation.objects.create(
                cluster=device.node.cluster, node=device.node, device=device, device_uuid=device.uuid, namespace="team",
                workload=workload, pod_set="main", replica=replica, container="main", memory_mib=memory,
                cores_percent=10, created_at=START,
            )  # fmt: skip
        slices = {"namespace": "team", "node": "n1", "container_index": "0", "device_uuid": "n1-0"}
        limits = {"namespace": "team", "container": "main", "vdevice_index": "0", "device_uuid": "n1-0"}
        families, samples = scrape(vera)
        assert value(samples, "hami_vgpu_memory_allocated_bytes", **slices, pod="") == 3000 * 2**20
        assert not families["hami_vgpu_memory_limit_bytes"].samples
        common = {"workload": workload, "pod_set": "main", "namespace": "team"}
        for replica, name, phase in ((0, "two-a", "Failed"), (0, "two-b", "Running"), (1, "two-c", "Pending")):
            Pod.objects.create(**common, replica=replica, name=name, uid=name, phase=phase)
        _, samples = scrape(vera)
        for name, memory in (("two-b", 1000), ("two-c", 2000)):
            assert value(samples, "hami_vgpu_memory_allocated_bytes", **slices, pod=name) == memory * 2**20
            assert value(samples, "hami_vgpu_core_allocated_ratio", **slices, pod=name) == 10
            assert value(samples, "hami_vgpu_memory_limit_bytes", **limits, pod=name) == memory * 2**20

    def test_older_names_only_where_they_are_asked_for(
        self, vera: SchemaClient, device: Device, settings: LazySettings
    ) -> None:
        assert "GPUDeviceMemoryLimit" not in scrape(vera)[0]
        settings.METRICS_LEGACY_HAMI_NAMES = True
        _, samples = scrape(vera)
        old = {"nodeid": "n1", "deviceuuid": "n1-0", "deviceidx": "0", "devicetype": "V100"}
        assert value(samples, "GPUDeviceMemoryLimit", **old) == 16_000 * 2**20


def test_not_for_tenants(bob: SchemaClient, db: None) -> None:
    assert bob.get("/metrics").status_code == 403
    assert SchemaClient().get("/metrics").status_code == 401
