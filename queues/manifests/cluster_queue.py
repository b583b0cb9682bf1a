"""ClusterQueue."""

from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Final

from queues.manifests.alpha_resources import read_alpha_resources
from queues.manifests.cluster_queue_checks import read_admission_checks, write_admission_checks
from queues.manifests.cluster_queue_policies import (
    ConcurrentAdmission,
    Fungibility,
    Preemption,
    read_concurrent_admission,
    read_fungibility,
    read_preemption,
)
from queues.manifests.fair_sharing import DEFAULT_WEIGHT, read_weight, write_weight
from queues.manifests.protection import (
    PREEMPT_FOR_DEVICES,
    read_flag,
    read_protection,
    without_columns,
    write_columns,
)
from queues.manifests.resource_groups import ResourceGroupSpec, read_resource_groups, write_resource_groups
from queues.manifests.selector import read_label_selector
from scheduling.manifest import Fields, ObjectMeta, read_metadata, write_metadata
from scheduling.manifest.syntax import dns_subdomain
from scheduling.model.vocabulary import AdmissionMode, QueueingStrategy, StopPolicy

_COHORT_FIELD: Final = {"v1alpha2": "cohort", "v1beta1": "cohort", "v1beta2": "cohortName"}


@dataclass(frozen=True, slots=True)
class ClusterQueueSpec:
    """Columns of ClusterQueue, and its quotas. The defaults are Kueue's."""

    meta: ObjectMeta
    cohort_name: str = ""
    queueing_strategy: str = QueueingStrategy.BEST_EFFORT_FIFO
    namespace_selector: dict[str, Any] | None = None
    when_can_borrow: str = Fungibility.when_can_borrow
    when_can_preempt: str = Fungibility.when_can_preempt
    flavor_preference: str = Fungibility.flavor_preference
    within_cluster_queue: str = Preemption.within_cluster_queue
    reclaim_within_cohort: str = Preemption.reclaim_within_cohort
    borrow_within_cohort_policy: str = Preemption.borrow_within_cohort_policy
    borrow_within_cohort_max_priority_threshold: int | None = None
    admission_checks: list[dict[str, Any]] = field(default_factory=list)
    stop_policy: str = StopPolicy.NONE
    fair_sharing_weight: Decimal = DEFAULT_WEIGHT
    admission_mode: str = ""
    concurrent_admission_policy: ConcurrentAdmission = field(default_factory=dict)
    preempt_for_devices: bool = False
    preemption_protection: dict[str, int] = field(default_factory=dict)
    resource_groups: tuple[ResourceGroupSpec, ...] = ()


def read_cluster_queue(top: Fields, version: str) -> ClusterQueueSpec:
    """Read a ClusterQueue of v1beta2, v1beta1 or v1alpha2."""
    top.ignore("status")
    meta = read_metadata(top, namespaced=False)
    spec = top.required_fields("spec")
    cohort = spec.text(_COHORT_FIELD[version], syntax=dns_subdomain)
    if version == "v1alpha2":
        groups = read_alpha_resources(spec, in_cohort=bool(cohort))
    else:
        groups = read_resource_groups(spec, in_cohort=bool(cohort), lending_within_nominal=True)
    strategy = spec.choice("queueingStrategy", QueueingStrategy.BEST_EFFORT_FIFO)
    selector = read_label_selector(spec, "namespaceSelector")
    preemption = read_preemption(spec, version)
    common = ClusterQueueSpec(
        without_columns(meta),
        cohort,
        strategy.value,
        selector,
        within_cluster_queue=preemption.within_cluster_queue,
        reclaim_within_cohort=preemption.reclaim_within_cohort,
        borrow_within_cohort_policy=preemption.borrow_within_cohort_policy,
        borrow_within_cohort_max_priority_threshold=preemption.borrow_within_cohort_max_priority_threshold,
        preempt_for_devices=read_flag(top, meta, PREEMPT_FOR_DEVICES),
        preemption_protection=read_protection(top, meta),
        resource_groups=groups,
    )
    queue = common if version == "v1alpha2" else _with_beta_fields(spec, version, common)
    spec.close()
    return queue


def _with_beta_fields(spec: Fields, version: str, queue: ClusterQueueSpec) -> ClusterQueueSpec:
    fungibility = read_fungibility(spec, version)
    scope = spec.fields("admissionScope")
    mode = scope.optional_choice("admissionMode", list(AdmissionMode)) if scope else None
    if scope:
        scope.close()
    return replace(
        queue,
        when_can_borrow=fungibility.when_can_borrow,
        when_can_preempt=fungibility.when_can_preempt,
        flavor_preference=fungibility.flavor_preference,
        admission_checks=read_admission_checks(spec, version, queue.resource_groups),
        stop_policy=spec.choice("stopPolicy", StopPolicy.NONE).value,
        fair_sharing_weight=read_weight(spec),
        admission_mode=mode.value if mode else "",
        concurrent_admission_policy=read_concurrent_admission(
            spec, version, queue.queueing_strategy, queue.resource_groups
        ),
    )


def write_cluster_queue(spec: ClusterQueueSpec) -> dict[str, Any]:
    """The manifest of a ClusterQueue; what is as Kueue's defaults is left out, but for the strategy."""
    body: dict[str, Any] = {}
    if spec.cohort_name:
        body["cohortName"] = spec.cohort_name
    body["queueingStrategy"] = spec.queueing_strategy
    if spec.namespace_selector is not None:
        body["namespaceSelector"] = spec.namespace_selector
    body |= _write_policies(spec)
    if spec.admission_checks:
        body["admissionChecksStrategy"] = write_admission_checks(spec.admission_checks)
    if spec.stop_policy != StopPolicy.NONE:
        body["stopPolicy"] = spec.stop_policy
    body |= write_weight(spec.fair_sharing_weight)
    if spec.admission_mode:
        body["admissionScope"] = {"admissionMode": spec.admission_mode}
    if spec.concurrent_admission_policy:
        body["concurrentAdmissionPolicy"] = spec.concurrent_admission_policy
    if spec.resource_groups:
        body["resourceGroups"] = write_resource_groups(spec.resource_groups)
    meta = write_columns(spec.meta, protection=spec.preemption_protection, preempt_for_devices=spec.preempt_for_devices)
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": write_metadata(meta),
        "spec": body,
    }


def _write_policies(spec: ClusterQueueSpec) -> dict[str, Any]:
    fungibility = {"whenCanBorrow": spec.when_can_borrow, "whenCanPreempt": spec.when_can_preempt}
    if spec.flavor_preference:
        fungibility["preference"] = spec.flavor_preference
    preemption: dict[str, Any] = {
        "withinClusterQueue": spec.within_cluster_queue,
        "reclaimWithinCohort": spec.reclaim_within_cohort,
    }
    threshold = spec.borrow_within_cohort_max_priority_threshold
    if spec.borrow_within_cohort_policy != Preemption.borrow_within_cohort_policy or threshold is not None:
        borrow: dict[str, Any] = {"policy": spec.borrow_within_cohort_policy}
        if threshold is not None:
            borrow["maxPriorityThreshold"] = threshold
        preemption["borrowWithinCohort"] = borrow
    written: dict[str, Any] = {}
    if fungibility != {"whenCanBorrow": Fungibility.when_can_borrow, "whenCanPreempt": Fungibility.when_can_preempt}:
        written["flavorFungibility"] = fungibility
    if preemption != {
        "withinClusterQueue": Preemption.within_cluster_queue,
        "reclaimWithinCohort": Preemption.reclaim_within_cohort,
    }:
        written["preemption"] = preemption
    return written
