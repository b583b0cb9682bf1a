"""Rows of quotas, queues, nodes and devices -> the core's objects.

Each `read_` takes the row ids to read, or None for all of a cluster, and returns the objects by row id; a row that is
gone is absent from the answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeVar

from django.db.models import Model, QuerySet

from accounts.models import Namespace as NamespaceRow
from queues.models import AdmissionCheck as AdmissionCheckRow
from queues.models import ClusterQueue as ClusterQueueRow
from queues.models import Cohort as CohortRow
from queues.models import LimitRange as LimitRangeRow
from queues.models import LocalQueue as LocalQueueRow
from queues.models import ResourceFlavor as ResourceFlavorRow
from queues.models import ResourceGroup as ResourceGroupRow
from queues.models import ResourceQuota as ResourceQuotaRow
from queues.models import RuntimeClass as RuntimeClassRow
from queues.models import Topology as TopologyRow
from scheduling.devices.search.namespace_quota import NamespaceQuota, whole_amounts
from scheduling.model.admission_check import AdmissionCheck, AdmissionCheckRule
from scheduling.model.cluster_queue import BorrowWithinCohort, ClusterQueue, ClusterQueuePreemption, FlavorFungibility
from scheduling.model.cohort import Cohort, FlavorQuotas, PreemptionProtection, ResourceGroup, ResourceQuota
from scheduling.model.limit_range import LimitRange, LimitRangeItem
from scheduling.model.local_queue import LocalQueue
from scheduling.model.pod_defaults import RuntimeClass
from scheduling.model.resource_flavor import ResourceFlavor
from scheduling.model.selectors import LabelSelector, Taint, Toleration
from scheduling.model.topology import Topology
from scheduling.model.vocabulary import (
    AdmissionMode,
    BorrowWithinCohortPolicy,
    FungibilityPolicy,
    FungibilityPreference,
    QueueingStrategy,
    ReclaimWithinCohortPolicy,
    StopPolicy,
    WithinClusterQueuePolicy,
)

Ids = Collection[int] | None


Row = TypeVar("Row", bound=Model)


def rows_of(queryset: QuerySet[Row], cluster_id: int, ids: Ids) -> Iterable[Row]:
    """The rows of a cluster, or those of them that are named."""
    selected = queryset.filter(cluster_id=cluster_id)
    return selected if ids is None else selected.filter(pk__in=ids)


def read_namespaces(cluster_id: int, ids: Ids = None) -> dict[int, tuple[str, Mapping[str, str]]]:
    """(name, labels) of each namespace."""
    return {row.pk: (row.name, row.labels) for row in rows_of(NamespaceRow.objects.all(), cluster_id, ids)}


def read_resource_quotas(cluster_id: int, ids: Ids = None) -> dict[int, NamespaceQuota]:
    """ResourceQuotas, in whole units."""
    rows = rows_of(ResourceQuotaRow.objects.all(), cluster_id, ids)
    return {row.pk: NamespaceQuota(row.namespace, row.name, whole_amounts(row.hard)) for row in rows}


def read_limit_ranges(cluster_id: int, ids: Ids = None) -> dict[int, LimitRange]:
    """LimitRanges."""
    return {
        row.pk: LimitRange(row.namespace, row.name, tuple(LimitRangeItem.from_manifest(item) for item in row.limits))
        for row in rows_of(LimitRangeRow.objects.all(), cluster_id, ids)
    }


def read_runtime_classes(cluster_id: int, ids: Ids = None) -> dict[int, RuntimeClass]:
    """RuntimeClasses."""
    rows = rows_of(RuntimeClassRow.objects.all(), cluster_id, ids)
    return {row.pk: RuntimeClass(row.name, row.pod_overhead) for row in rows}


def read_resource_flavors(cluster_id: int, ids: Ids = None) -> dict[int, ResourceFlavor]:
    """Flavors."""
    return {
        row.pk: ResourceFlavor(
            name=row.name,
            node_labels=row.node_labels,
            node_taints=tuple(Taint.from_manifest(taint) for taint in row.node_taints),
            tolerations=tuple(Toleration.from_manifest(toleration) for toleration in row.tolerations),
            topology_name=row.topology_name or None,
        )
        for row in rows_of(ResourceFlavorRow.objects.all(), cluster_id, ids)
    }


def read_topologies(cluster_id: int, ids: Ids = None) -> dict[int, Topology]:
    """Topologies."""
    rows = rows_of(TopologyRow.objects.all(), cluster_id, ids)
    return {row.pk: Topology(row.name, tuple(row.levels)) for row in rows}


def read_admission_checks(cluster_id: int, ids: Ids = None) -> dict[int, AdmissionCheck]:
    """Admission checks."""
    rows = rows_of(AdmissionCheckRow.objects.all(), cluster_id, ids)
    return {row.pk: AdmissionCheck(row.name, row.controller_name, row.active) for row in rows}


def _resource_groups(owner: str, owner_ids: Iterable[int]) -> dict[int, tuple[ResourceGroup, ...]]:
    groups: dict[int, list[ResourceGroup]] = defaultdict(list)
    rows = (
        ResourceGroupRow.objects.filter(**{f"{owner}__in": list(owner_ids)})
        .order_by("position")
        .prefetch_related("quotas")
    )
    for row in rows:
        cells: dict[str, dict[str, ResourceQuota]] = {flavor: {} for flavor in row.flavors}
        for cell in row.quotas.all():
            quota = ResourceQuota(cell.nominal_quota, cell.borrowing_limit, cell.lending_limit)
            cells.setdefault(cell.flavor, {})[cell.resource] = quota
        flavors = tuple(FlavorQuotas(name, quotas) for name, quotas in cells.items())
        groups[getattr(row, owner)].append(ResourceGroup(tuple(row.covered_resources), flavors))
    return {owner_id: tuple(found) for owner_id, found in groups.items()}


def _protection(fields: Mapping[str, Any]) -> PreemptionProtection:
    return PreemptionProtection(
        float(fields.get("minimum_run_seconds") or 0), float(fields.get("cool_down_seconds") or 0)
    )


def read_cohorts(cluster_id: int, ids: Ids = None) -> dict[int, Cohort]:
    """Cohorts with their quotas."""
    rows = list(rows_of(CohortRow.objects.all(), cluster_id, ids))
    groups = _resource_groups("cohort_id", (row.pk for row in rows))
    return {
        row.pk: Cohort(
            name=row.name,
            parent_name=row.parent_name,
            resource_groups=groups.get(row.pk, ()),
            fair_weight=float(row.fair_sharing_weight),
            protection=_protection(row.preemption_protection),
        )
        for row in rows
    }


def _admission_check_rules(rules: Iterable[Mapping[str, Any]]) -> tuple[AdmissionCheckRule, ...]:
    return tuple(AdmissionCheckRule(rule["name"], tuple(rule.get("onFlavors") or ())) for rule in rules)


def read_cluster_queues(cluster_id: int, ids: Ids = None) -> dict[int, ClusterQueue]:
    """ClusterQueues with their quotas."""
    rows = list(rows_of(ClusterQueueRow.objects.all(), cluster_id, ids))
    groups = _resource_groups("cluster_queue_id", (row.pk for row in rows))
    return {row.pk: _cluster_queue(row, groups.get(row.pk, ())) for row in rows}


def _cluster_queue(row: ClusterQueueRow, groups: tuple[ResourceGroup, ...]) -> ClusterQueue:
    borrow_within_cohort = BorrowWithinCohort(
        BorrowWithinCohortPolicy(row.borrow_within_cohort_policy), row.borrow_within_cohort_max_priority_threshold
    )
    return ClusterQueue(
        name=row.name,
        cohort_name=row.cohort_name,
        resource_groups=groups,
        queueing_strategy=QueueingStrategy(row.queueing_strategy),
        namespace_selector=None
        if row.namespace_selector is None
        else LabelSelector.from_manifest(row.namespace_selector),
        preemption=ClusterQueuePreemption(
            WithinClusterQueuePolicy(row.within_cluster_queue),
            ReclaimWithinCohortPolicy(row.reclaim_within_cohort),
            borrow_within_cohort,
        ),
        flavor_fungibility=FlavorFungibility(
            FungibilityPolicy(row.when_can_borrow),
            FungibilityPolicy(row.when_can_preempt),
            FungibilityPreference(row.flavor_preference) if row.flavor_preference else None,
        ),
        fair_weight=float(row.fair_sharing_weight),
        stop_policy=StopPolicy(row.stop_policy),
        admission_checks=_admission_check_rules(row.admission_checks),
        admission_mode=AdmissionMode(row.admission_mode or AdmissionMode.NO_ADMISSION_FAIR_SHARING),
        labels=row.labels,
        preempt_for_devices=row.preempt_for_devices,
        protection=_protection(row.preemption_protection),
        terminating=row.deletion_requested_at is not None,
    )


def read_local_queues(cluster_id: int, ids: Ids = None) -> dict[int, LocalQueue]:
    """LocalQueues."""
    return {
        row.pk: LocalQueue(
            namespace=row.namespace,
            name=row.name,
            cluster_queue=row.cluster_queue_name,
            stop_policy=StopPolicy(row.stop_policy),
            fair_weight=float(row.fair_sharing_weight),
            consumed=row.admission_fair_sharing.get("consumedResources") or {},
            consumed_at=row.admission_fair_sharing.get("lastUpdate"),
            terminating=row.deletion_requested_at is not None,
        )
        for row in rows_of(LocalQueueRow.objects.all(), cluster_id, ids)
    }
