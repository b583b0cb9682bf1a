"""The changes of a plan as values: stored in a transaction, read as the scheduler reads rows, and rolled back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from django.contrib.auth.models import User
from django.db import OperationalError, connection, transaction

from accounts.models import Cluster
from foundation.exceptions import InvalidRequest
from gpus.manifests import configured_policies, configured_vendors
from gpus.vendors import VENDORS
from queues.models import WorkloadPriorityClass
from scheduler.store.configuration import cluster_configuration
from scheduler.store.device_objects import DEVICE_OBJECT, read_device_objects
from scheduler.store.kept_world import changed_rows, kept_world
from scheduler.store.node_rows import read_nodes
from scheduler.store.objects import read_objects
from scheduler.store.row_index import KINDS_IN_ORDER, as_the_world_sees_it
from scheduler.store.workloads import read_workloads
from scheduling.devices.search.namespace_quota import NamespaceQuota
from scheduling.model.admission_check import AdmissionCheck
from scheduling.model.cluster_queue import ClusterQueue
from scheduling.model.cohort import Cohort
from scheduling.model.configuration import Features
from scheduling.model.limit_range import LimitRange
from scheduling.model.local_queue import LocalQueue
from scheduling.model.node import Node
from scheduling.model.pod_defaults import RuntimeClass
from scheduling.model.resource_flavor import ResourceFlavor
from scheduling.model.topology import Topology
from scheduling.model.vocabulary import ConditionType
from scheduling.model.workload import Workload
from scheduling.reservations.reservation import Reservation
from scheduling.studio.world_changes import (
    Change,
    DeleteObject,
    EndWorkload,
    Namespace,
    RequeueWorkload,
    SetConfiguration,
    SetDeviceObjects,
    SetObject,
    SetPlacementPolicies,
    SetPriority,
    Settable,
)
from scheduling.world import World
from studio.services.plan_basis import basis_of
from studio.services.plans import Plan, plan_access, store_plan

_MAX_ATTEMPTS: Final = 5
"""Each attempt works on one state of all rows, and ends if another process changes a row meanwhile."""
_SERIALIZATION_FAILURE: Final = "40001"
_CLASSES: Final[Mapping[str, type[Settable]]] = {
    "namespace": Namespace,
    "runtimeclass": RuntimeClass,
    "limitrange": LimitRange,
    "resourcequota": NamespaceQuota,
    "resourceflavor": ResourceFlavor,
    "topology": Topology,
    "admissioncheck": AdmissionCheck,
    "cohort": Cohort,
    "clusterqueue": ClusterQueue,
    "localqueue": LocalQueue,
    "node": Node,
    "reservation": Reservation,
    "workload": Workload,
}


@dataclass(frozen=True, slots=True)
class PlannedChanges:
    """The kept World of a cluster, the changes that a plan makes to it, and the versions on which they rest."""

    world: World
    changes: list[Change]
    basis: dict[str, Any]


def planned_changes(cluster: Cluster, plan: Plan, user: User | None, now: float) -> PlannedChanges:
    """Read the changes that a plan makes. Nothing is stored.

    Raises the errors of `store_plan`, and InvalidRequest for a change of the vendors of devices.
    """
    for attempt in range(1, _MAX_ATTEMPTS + 1):
        try:
            return _attempt(cluster, plan, user, now)
        except OperationalError as error:
            if attempt == _MAX_ATTEMPTS or getattr(error.__cause__, "sqlstate", "") != _SERIALIZATION_FAILURE:
                raise
    raise AssertionError("the last attempt returns or raises")


def _attempt(cluster: Cluster, plan: Plan, user: User | None, now: float) -> PlannedChanges:
    alone = not connection.in_atomic_block
    with transaction.atomic():
        if alone:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        with kept_world(cluster, now) as world:
            pass  # loaded before the plan takes locks
        basis = basis_of(cluster, plan)
        store_plan(cluster, plan, plan_access(user, cluster), user)
        changes = list(_stored(cluster, world))
        transaction.set_rollback(True)
    if plan.node_policy or plan.device_policy:
        changes.append(_policies(cluster, plan))
    return PlannedChanges(world, [*changes, *plan.nodes, *_acts(cluster, plan)], basis)


def _acts(cluster: Cluster, plan: Plan) -> Iterator[Change]:
    """Yield the ends, requeues and priorities of single workloads."""
    yield from (EndWorkload(key) for key in plan.end)
    yield from (RequeueWorkload(key) for key in plan.requeue)
    names = {name for _, name in plan.priorities}
    rows = WorkloadPriorityClass.objects.filter(cluster=cluster, name__in=names)
    values = dict(rows.values_list("name", "value")) if names else {}
    yield from (SetPriority(key, values[name]) for key, name in plan.priorities)


def _policies(cluster: Cluster, plan: Plan) -> Change:
    node_policy, device_policy = configured_policies(cluster.device_plugin_configuration.get("settings", {}))
    return SetPlacementPolicies(plan.node_policy or node_policy, plan.device_policy or device_policy)


def _stored(cluster: Cluster, world: World) -> Iterator[Change]:
    """Yield the changes of this transaction, in the order in which objects refer to each other."""
    yield from _settings(cluster, Cluster.objects.get(pk=cluster.pk), world)
    features = world.configuration.features
    changed = changed_rows(cluster)
    for kind in KINDS_IN_ORDER:
        noted = changed.get(kind)
        if not noted:
            continue
        if kind == DEVICE_OBJECT:
            yield SetDeviceObjects(read_device_objects(cluster.pk))
            continue
        found = _READERS.get(kind, _objects)(kind, cluster.pk, noted, features)
        yield from (DeleteObject(_CLASSES[kind], key) for id_, key in noted.items() if id_ not in found)
        yield from found.values()


def _settings(before: Cluster, after: Cluster, world: World) -> Iterator[Change]:
    configuration = cluster_configuration(after)
    if configuration != world.configuration:
        yield SetConfiguration(configuration)
    was, is_ = (each.device_plugin_configuration.get("settings", {}) for each in (before, after))
    if configured_vendors(was, VENDORS) != configured_vendors(is_, VENDORS):
        raise InvalidRequest(
            "apply: Forbidden: a ConfigMap that changes how devices are read cannot be tried, because nodes would be "
            "read again. Its policies can: write them in the section policies."
        )
    if configured_policies(was) != configured_policies(is_):
        yield SetPlacementPolicies(*configured_policies(is_))


Noted = Mapping[int, str]


def _objects(kind: str, cluster_id: int, noted: Noted, features: Features) -> dict[int, Change]:
    return {
        id_: SetObject(_valued(kind, value, features))
        for id_, value in read_objects(kind, cluster_id, list(noted)).items()
    }


def _valued(kind: str, value: Any, features: Features) -> Settable:
    if kind == "namespace":
        return Namespace(*value)
    if isinstance(value, ClusterQueue) and not features.concurrent_admission:
        return replace(value, concurrent_admission=None)
    found: Settable = value
    return found


def _nodes(kind: str, cluster_id: int, noted: Noted, features: Features) -> dict[int, Change]:
    return {row.pk: SetObject(node) for row, node in read_nodes(cluster_id, noted)}


def _workloads(kind: str, cluster_id: int, noted: Noted, features: Features) -> dict[int, Change]:
    """Return a workload that is to end has ended: its pods stop while nothing else happens."""
    found: dict[int, Change] = {}
    for stored in read_workloads(cluster_id, list(noted)):
        workload = stored.workload
        ends = stored.deletion_requested or not workload.active or workload.is_true(ConditionType.FINISHED)
        counted = as_the_world_sees_it(features.counted(workload))
        found[stored.id] = EndWorkload(workload.key) if ends else SetObject(counted)
    return found


_READERS: Final[Mapping[str, Callable[[str, int, Noted, Features], dict[int, Change]]]] = {
    "node": _nodes,
    "workload": _workloads,
}
