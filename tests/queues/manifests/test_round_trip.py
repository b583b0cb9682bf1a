"""What is written as a manifest and read again is the same: for any spec that validation lets through."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from clusters.manifests import to_yaml
from queues.manifests.cluster_queue import ClusterQueueSpec, read_cluster_queue, write_cluster_queue
from queues.manifests.cohort import CohortSpec, read_cohort, write_cohort
from queues.manifests.documents import read_documents
from queues.manifests.limit_range import LimitRangeSpec, read_limit_range, write_limit_range
from queues.manifests.local_queue import LocalQueueSpec, read_local_queue, write_local_queue
from queues.manifests.resource_flavor import ResourceFlavorSpec, read_resource_flavor, write_resource_flavor
from queues.manifests.resource_quota import ResourceQuotaSpec, read_resource_quota, write_resource_quota
from queues.manifests.runtime_class import RuntimeClassSpec, read_runtime_class, write_runtime_class
from queues.manifests.workload import WorkloadSpec
from queues.manifests.workload_object import read_workload, write_workload
from scheduling.manifest import Fields, ObjectMeta, Report
from scheduling.model.limit_range import with_api_defaults
from tests.manifest_strategies import (
    LABELS,
    METAS,
    NAMES,
    PROTECTION,
    VALUES,
    WEIGHTS,
    cluster_queues,
    resource_groups,
    workloads,
)


def read_again(reader: Any, manifest: dict[str, Any]) -> Any:
    (document,) = read_documents(to_yaml([manifest]))
    report = Report()
    top = Fields(report, "", document.content)
    top.ignore("apiVersion", "kind")
    spec = reader(top, "v1beta2")
    top.close()
    assert report.errors == []
    return spec


@given(cluster_queues())
def test_cluster_queues(spec: ClusterQueueSpec) -> None:
    assert read_again(read_cluster_queue, write_cluster_queue(spec)) == spec


@given(
    st.builds(
        CohortSpec, METAS, st.just("") | NAMES, WEIGHTS, PROTECTION, resource_groups(lending_within_nominal=False)
    )
)
def test_cohorts(spec: CohortSpec) -> None:
    assert read_again(read_cohort, write_cohort(spec)) == spec


@given(
    st.builds(
        LocalQueueSpec,
        st.builds(ObjectMeta, NAMES, NAMES, LABELS),
        NAMES,
        st.sampled_from(["None", "Hold", "HoldAndDrain"]),
        WEIGHTS,
    )
)
def test_local_queues(spec: LocalQueueSpec) -> None:
    assert read_again(read_local_queue, write_local_queue(spec)) == spec


@given(
    st.builds(
        ResourceFlavorSpec,
        METAS,
        st.dictionaries(NAMES, VALUES, min_size=1, max_size=8),
        st.lists(
            st.fixed_dictionaries({"key": NAMES, "effect": st.sampled_from(["NoSchedule", "NoExecute"])}),
            unique_by=lambda taint: (taint["key"], taint["effect"]),
            max_size=3,
        ),
        st.lists(st.fixed_dictionaries({"key": NAMES, "operator": st.just("Exists")}), max_size=3),
        st.just("") | NAMES,
    )
)
def test_resource_flavors(spec: ResourceFlavorSpec) -> None:
    assert read_again(read_resource_flavor, write_resource_flavor(spec)) == spec


QUANTITIES = st.sampled_from(["1", "500m", "2Gi", "10k", "0"])
AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory", "nvidia.com/gpumem"]), QUANTITIES, max_size=3)
NAMESPACED = st.builds(ObjectMeta, NAMES, NAMES, LABELS)


@given(
    st.builds(
        ResourceQuotaSpec,
        NAMESPACED,
        AMOUNTS,
        st.lists(st.sampled_from(["BestEffort", "Terminating"]), unique=True),
        st.just({}) | st.just({"matchExpressions": [{"scopeName": "BestEffort", "operator": "Exists"}]}),
    )
)
def test_resource_quotas(spec: ResourceQuotaSpec) -> None:
    assert read_again(read_resource_quota, write_resource_quota(spec)) == spec


@given(NAMESPACED, st.sampled_from(["Container", "Pod"]), st.sampled_from(["min", "max"]), AMOUNTS)
def test_limit_ranges(meta: ObjectMeta, type_: str, bound: str, amounts: dict[str, str]) -> None:
    entry = with_api_defaults({"type": type_, bound: amounts} if amounts else {"type": type_})
    spec = LimitRangeSpec(meta, [entry])
    assert read_again(read_limit_range, write_limit_range(spec)) == spec


@given(
    st.builds(
        RuntimeClassSpec,
        METAS,
        st.just("kata"),
        AMOUNTS,
        st.just({}) | st.builds(dict, nodeSelector=st.dictionaries(NAMES, VALUES, min_size=1, max_size=2)),
    )
)
def test_runtime_classes(spec: RuntimeClassSpec) -> None:
    assert read_again(read_runtime_class, write_runtime_class(spec)) == spec


@given(workloads())
def test_workloads(spec: WorkloadSpec) -> None:
    assert read_again(read_workload, write_workload(spec)) == spec
