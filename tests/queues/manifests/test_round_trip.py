"""What is written as a manifest and read again is the same: for any spec that validation lets through."""

from datetime import UTC, datetime
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from clusters.manifests import to_yaml
from kinds.declaration import KindSpec
from queues.kinds import KINDS
from queues.manifests.documents import read_documents
from queues.manifests.workload import WorkloadSpec
from queues.manifests.workload_object import read_workload, write_workload
from scheduling.manifest import FieldReader, ObjectMeta, ValidationReport
from scheduling.model.limit_range import with_api_defaults
from scheduling.reservations.reservation import BusyPolicy
from tests.manifest_strategies import (
    LABELS,
    METAS,
    NAMES,
    SECONDS,
    TEXTS,
    VALUES,
    WEIGHTS,
    cluster_queues,
    resource_groups,
    spec,
    specs,
    workloads,
)


def read_again(reader: Any, manifest: dict[str, Any]) -> Any:
    (document,) = read_documents(to_yaml([manifest]))
    report = ValidationReport()
    top = FieldReader(report, "", document.content)
    top.ignore("apiVersion", "kind")
    found = reader(top, manifest["apiVersion"].rpartition("/")[2])
    top.close()
    assert report.errors == []
    return found


def assert_round_trip(kind: str, written: KindSpec) -> None:
    assert read_again(KINDS[kind].read, KINDS[kind].write(written)) == written


@given(cluster_queues())
@example(spec("ClusterQueue", ObjectMeta("0o0", "", {}, {})))
def test_cluster_queues(queue: KindSpec) -> None:
    assert_round_trip("ClusterQueue", queue)


@given(
    specs(
        "Cohort",
        METAS,
        parent_name=st.just("") | NAMES,
        fair_sharing_weight=WEIGHTS,
        minimum_run_seconds=SECONDS,
        cool_down_seconds=SECONDS,
        resource_groups=resource_groups(lending_within_nominal=False),
    )
)
def test_cohorts(cohort: KindSpec) -> None:
    assert_round_trip("Cohort", cohort)


@given(
    specs(
        "LocalQueue",
        st.builds(ObjectMeta, NAMES, NAMES, LABELS),
        cluster_queue_name=NAMES,
        stop_policy=st.sampled_from(["None", "Hold", "HoldAndDrain"]),
        fair_sharing_weight=WEIGHTS,
    )
)
def test_local_queues(queue: KindSpec) -> None:
    assert_round_trip("LocalQueue", queue)


@given(
    specs(
        "ResourceFlavor",
        METAS,
        node_labels=st.dictionaries(NAMES, VALUES, min_size=1, max_size=8),
        node_taints=st.lists(
            st.fixed_dictionaries({"key": NAMES, "effect": st.sampled_from(["NoSchedule", "NoExecute"])}),
            unique_by=lambda taint: (taint["key"], taint["effect"]),
            max_size=3,
        ),
        tolerations=st.lists(st.fixed_dictionaries({"key": NAMES, "operator": st.just("Exists")}), max_size=3),
        topology_name=st.just("") | NAMES,
    )
)
def test_resource_flavors(flavor: KindSpec) -> None:
    assert_round_trip("ResourceFlavor", flavor)


@given(specs("Topology", METAS, levels=st.lists(NAMES, min_size=1, max_size=4, unique=True)))
def test_topologies(topology: KindSpec) -> None:
    assert_round_trip("Topology", topology)


QUANTITIES = st.sampled_from(["1", "500m", "2Gi", "10k", "0"])
AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory", "nvidia.com/gpumem"]), QUANTITIES, max_size=3)
NAMESPACED = st.builds(ObjectMeta, NAMES, NAMES, LABELS)


@given(
    specs(
        "ResourceQuota",
        NAMESPACED,
        hard=AMOUNTS,
        scopes=st.lists(st.sampled_from(["BestEffort", "Terminating"]), unique=True),
        scope_selector=st.just({}) | st.just({"matchExpressions": [{"scopeName": "BestEffort", "operator": "Exists"}]}),
    )
)
def test_resource_quotas(quota: KindSpec) -> None:
    assert_round_trip("ResourceQuota", quota)


@given(NAMESPACED, st.sampled_from(["Container", "Pod"]), st.sampled_from(["min", "max"]), AMOUNTS)
def test_limit_ranges(meta: ObjectMeta, type_: str, bound: str, amounts: dict[str, str]) -> None:
    entry = with_api_defaults({"type": type_, bound: amounts} if amounts else {"type": type_})
    assert_round_trip("LimitRange", spec("LimitRange", meta, limits=[entry]))


@given(
    specs(
        "Reservation",
        METAS,
        starts_at=st.integers(1, 2**30).map(lambda at: datetime.fromtimestamp(at, UTC)),
        ends_at=st.integers(2**30 + 1, 2**32).map(lambda at: datetime.fromtimestamp(at + 0.5, UTC)),
        node_names=st.lists(NAMES, min_size=1, max_size=3, unique=True),
        node_labels=LABELS,
        allowed_namespaces=st.lists(NAMES, max_size=2, unique=True),
        allowed_local_queues=st.just([]) | st.just(["team/main"]),
        allowed_cluster_queues=st.lists(NAMES, max_size=2, unique=True),
        allowed_users=st.just([]) | st.just(["ada@example.com"]),
        if_busy=st.sampled_from(BusyPolicy).map(str),
        comment=TEXTS,
    )
)
def test_reservations(reservation: KindSpec) -> None:
    assert_round_trip("Reservation", reservation)


@given(
    specs(
        "RuntimeClass",
        METAS,
        handler=st.just("kata"),
        pod_overhead=AMOUNTS,
        scheduling=st.just({}) | st.builds(dict, nodeSelector=st.dictionaries(NAMES, VALUES, min_size=1, max_size=2)),
    )
)
def test_runtime_classes(runtime_class: KindSpec) -> None:
    assert_round_trip("RuntimeClass", runtime_class)


@given(workloads())
def test_workloads(workload: WorkloadSpec) -> None:
    assert read_again(read_workload, write_workload(workload)) == workload


RESOURCES = st.sampled_from(["cpu", "memory", "nvidia.com/gpu", "nvidia.com/gpumem", "example.com/tpu", "pods"])
QUANTITIES = st.builds(
    "{}{}".format,
    st.integers(0, 9999) | st.decimals(0, 9999, places=1),
    st.sampled_from(["", "m", "k", "M", "G", "Ki", "Mi", "Gi", "e3", "E2"]),
)


@given(RESOURCES, QUANTITIES, st.none() | QUANTITIES)
@example("example.com/tpu", "800Gi", None)
@example("cpu", "0.5", "1e3")
def test_quantities_keep_their_spelling(resource: str, nominal: str, borrowing: str | None) -> None:
    """`800Gi` of a resource other than memory came back as 858993459200."""
    cell = {"name": resource, "nominalQuota": nominal}
    if borrowing is not None:
        cell["borrowingLimit"] = borrowing
    groups = [{"coveredResources": [resource], "flavors": [{"name": "f", "resources": [cell]}]}]
    manifest = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": "q"},
        "spec": {"cohortName": "c", "resourceGroups": groups},
    }
    written = KINDS["ClusterQueue"].write(read_again(KINDS["ClusterQueue"].read, manifest))
    assert written["spec"]["resourceGroups"] == groups
