"""The configuration kinds: the model of each, its manifest's reader and writer, what is frozen and what holds it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Protocol

from django.db.models import Q

from accounts.kinds.namespace import NamespaceSpec, read_namespace, write_namespace
from accounts.models import Cluster, Namespace
from queues.manifests.admission_check import AdmissionCheckSpec, read_admission_check, write_admission_check
from queues.manifests.cluster_queue import ClusterQueueSpec, read_cluster_queue, write_cluster_queue
from queues.manifests.cohort import CohortSpec, read_cohort, write_cohort
from queues.manifests.limit_range import LimitRangeSpec, read_limit_range, write_limit_range
from queues.manifests.local_queue import LocalQueueSpec, read_local_queue, write_local_queue
from queues.manifests.priority_class import (
    PriorityClassSpec,
    WorkloadPriorityClassSpec,
    read_priority_class,
    read_workload_priority_class,
    write_priority_class,
    write_workload_priority_class,
)
from queues.manifests.resource_flavor import (
    ResourceFlavorSpec,
    TopologySpec,
    read_resource_flavor,
    read_topology,
    write_resource_flavor,
    write_topology,
)
from queues.manifests.resource_quota import ResourceQuotaSpec, read_resource_quota, write_resource_quota
from queues.manifests.runtime_class import (
    RUNTIME_CLASS_VERSION,
    RuntimeClassSpec,
    read_runtime_class,
    write_runtime_class,
)
from queues.models import (
    AdmissionCheck,
    ClusterQueue,
    Cohort,
    Job,
    LimitRange,
    LocalQueue,
    PriorityClass,
    ResourceFlavor,
    ResourceGroup,
    ResourceQuota,
    RuntimeClass,
    Topology,
    Workload,
    WorkloadPriorityClass,
)
from scheduling.manifest import Fields, ObjectMeta
from scheduling.model.selectors import HOSTNAME_LABEL

_KUEUE: Final = "kueue.x-k8s.io"


class Spec(Protocol):
    """What a manifest of a configuration kind is read into."""

    @property
    def meta(self) -> ObjectMeta: ...


Frozen = Mapping[str, Callable[[Any, Any], bool]]
"""Path of a field -> whether it may not become what it would (old spec, new spec)."""


@dataclass(frozen=True)
class ConfigurationKind:
    """A kind that is one row (and its quotas), replaced by each apply."""

    kind: str
    api_versions: tuple[str, ...]
    model: type[Any]
    spec: type[Any]
    read: Callable[[Fields, str], Any]
    write: Callable[[Any], dict[str, Any]]
    frozen: Frozen
    users: Callable[[Cluster, str], str]
    """What still holds the object of this name, in words; empty: it may go."""
    namespaced: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The spec's fields that are columns of the row."""
        return tuple(field.name for field in fields(self.spec) if field.name not in ("meta", "resource_groups"))

    @property
    def has_quotas(self) -> bool:
        """Whether the object has resource groups."""
        return any(field.name == "resource_groups" for field in fields(self.spec))


def _nobody(cluster: Cluster, name: str) -> str:
    return ""


def _users_of_flavor(cluster: Cluster, name: str) -> str:
    groups = ResourceGroup.objects.filter(
        Q(cluster_queue__cluster=cluster) | Q(cohort__cluster=cluster), flavors__contains=[name]
    ).values_list("cluster_queue__name", "cohort__name")
    return _listed("it is a flavor of", [queue or cohort for queue, cohort in groups])


def _users_of_topology(cluster: Cluster, name: str) -> str:
    flavors = ResourceFlavor.objects.filter(cluster=cluster, topology_name=name)
    return _listed("it is the topology of", flavors.values_list("name", flat=True))


def _users_of_check(cluster: Cluster, name: str) -> str:
    queues = ClusterQueue.objects.filter(cluster=cluster, admission_checks__contains=[{"name": name}])
    return _listed("it is asked for by", queues.values_list("name", flat=True))


def _users_of_cluster_queue(cluster: Cluster, name: str) -> str:
    holders = Workload.objects.filter(cluster=cluster, cluster_queue_name=name, quota_reserved_at__isnull=False)
    return _listed("quota is held in it by", _keys(holders.exclude(status="Finished")))


def _users_of_namespace(cluster: Cluster, name: str) -> str:
    inside = {"cluster": cluster, "namespace": name}
    return (
        _listed("it has the LocalQueues", LocalQueue.objects.filter(**inside).values_list("name", flat=True))
        or _listed("it has the workloads", _keys(Workload.objects.filter(**inside).exclude(status="Finished")))
        or _listed("it has the jobs", Job.objects.filter(**inside).values_list("name", flat=True))
        or _listed("it has the ResourceQuotas", ResourceQuota.objects.filter(**inside).values_list("name", flat=True))
        or _listed("it has the LimitRanges", LimitRange.objects.filter(**inside).values_list("name", flat=True))
    )


def _keys(workloads: Any) -> list[str]:
    return [f"{namespace}/{name}" for namespace, name in workloads.values_list("namespace", "name")[: _SHOWN + 1]]


_SHOWN: Final = 5


def _listed(words: str, names: Any) -> str:
    found = list(names[: _SHOWN + 1])
    if not found:
        return ""
    more = " and others" if len(found) > _SHOWN else ""
    return f"{words} {', '.join(found[:_SHOWN])}{more}"


def _levels_are_frozen(old: TopologySpec, new: TopologySpec) -> bool:
    """Levels may change only while the host name is the last of them, before and after."""
    by_host = old.levels[-1:] == [HOSTNAME_LABEL] and new.levels[-1:] == [HOSTNAME_LABEL]
    return old.levels != new.levels and not by_host


_KUEUE_VERSIONS: Final = (f"{_KUEUE}/v1beta2", f"{_KUEUE}/v1beta1")
_WITH_ALPHA: Final = (*_KUEUE_VERSIONS, f"{_KUEUE}/v1alpha2")
_WITH_OLD_TOPOLOGY: Final = (*_KUEUE_VERSIONS, f"{_KUEUE}/v1alpha1")

KINDS: Final[Mapping[str, ConfigurationKind]] = {
    kind.kind: kind
    for kind in (
        ConfigurationKind(
            "Namespace", ("v1",), Namespace, NamespaceSpec, read_namespace, write_namespace, {}, _users_of_namespace
        ),
        ConfigurationKind(
            "WorkloadPriorityClass",
            _KUEUE_VERSIONS,
            WorkloadPriorityClass,
            WorkloadPriorityClassSpec,
            read_workload_priority_class,
            write_workload_priority_class,
            {},
            _nobody,
        ),
        ConfigurationKind(
            "PriorityClass",
            ("scheduling.k8s.io/v1",),
            PriorityClass,
            PriorityClassSpec,
            read_priority_class,
            write_priority_class,
            {
                "value": lambda old, new: old.value != new.value,
                "preemptionPolicy": lambda old, new: old.preemption_policy != new.preemption_policy,
            },
            _nobody,
        ),
        ConfigurationKind(
            "RuntimeClass",
            (RUNTIME_CLASS_VERSION,),
            RuntimeClass,
            RuntimeClassSpec,
            read_runtime_class,
            write_runtime_class,
            {"handler": lambda old, new: old.handler != new.handler},
            _nobody,
        ),
        ConfigurationKind(
            "LimitRange",
            ("v1",),
            LimitRange,
            LimitRangeSpec,
            read_limit_range,
            write_limit_range,
            {},
            _nobody,
            namespaced=True,
        ),
        ConfigurationKind(
            "ResourceQuota",
            ("v1",),
            ResourceQuota,
            ResourceQuotaSpec,
            read_resource_quota,
            write_resource_quota,
            {},
            _nobody,
            namespaced=True,
        ),
        ConfigurationKind(
            "Topology",
            _WITH_OLD_TOPOLOGY,
            Topology,
            TopologySpec,
            read_topology,
            write_topology,
            {"spec.levels": _levels_are_frozen},
            _users_of_topology,
        ),
        ConfigurationKind(
            "AdmissionCheck",
            _KUEUE_VERSIONS,
            AdmissionCheck,
            AdmissionCheckSpec,
            read_admission_check,
            write_admission_check,
            {"spec.controllerName": lambda old, new: old.controller_name != new.controller_name},
            _users_of_check,
        ),
        ConfigurationKind(
            "ResourceFlavor",
            _WITH_ALPHA,
            ResourceFlavor,
            ResourceFlavorSpec,
            read_resource_flavor,
            write_resource_flavor,
            {"spec.topologyName": lambda old, new: bool(old.topology_name) and old.topology_name != new.topology_name},
            _users_of_flavor,
        ),
        ConfigurationKind(
            "Cohort",
            (*_KUEUE_VERSIONS, f"{_KUEUE}/v1alpha1"),
            Cohort,
            CohortSpec,
            read_cohort,
            write_cohort,
            {},
            _nobody,
        ),
        ConfigurationKind(
            "ClusterQueue",
            _WITH_ALPHA,
            ClusterQueue,
            ClusterQueueSpec,
            read_cluster_queue,
            write_cluster_queue,
            {
                "spec.concurrentAdmissionPolicy": lambda old, new: (
                    old.concurrent_admission_policy != new.concurrent_admission_policy
                )
            },
            _users_of_cluster_queue,
        ),
        ConfigurationKind(
            "LocalQueue",
            _WITH_ALPHA,
            LocalQueue,
            LocalQueueSpec,
            read_local_queue,
            write_local_queue,
            {"spec.clusterQueue": lambda old, new: old.cluster_queue_name != new.cluster_queue_name},
            _nobody,
            namespaced=True,
        ),
    )
}
"""In the order in which they are applied: what is referred to comes first."""
