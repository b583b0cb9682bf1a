"""The users of an object: it is deleted when it has none.

As a message for one object (empty: it may be deleted), and as a condition of a query for all objects of a kind.
"""

from typing import Any, Final

from django.db.models import Exists, Func, JSONField, OuterRef, Q, QuerySet, Value

from accounts.models import Cluster
from queues.models import (
    ClusterQueue,
    LimitRange,
    LocalQueue,
    ResourceFlavor,
    ResourceGroup,
    ResourceQuota,
    Workload,
)

_SHOWN: Final = 5


def of_flavor(cluster: Cluster, name: str) -> str:
    """ClusterQueues and Cohorts with quota in it."""
    groups = ResourceGroup.objects.filter(
        Q(cluster_queue__cluster=cluster) | Q(cohort__cluster=cluster), flavors__contains=[name]
    ).values_list("cluster_queue__name", "cohort__name")
    return _listed("it is a flavor of", [queue or cohort for queue, cohort in groups])


def flavor_is_used() -> Q:
    groups = ResourceGroup.objects.filter(
        Q(cluster_queue__cluster=OuterRef("cluster")) | Q(cohort__cluster=OuterRef("cluster")),
        flavors__contains=_in_array(OuterRef("name")),
    )
    return Q(Exists(groups))


def of_topology(cluster: Cluster, name: str) -> str:
    flavors = ResourceFlavor.objects.filter(cluster=cluster, topology_name=name)
    return _listed("it is the topology of", flavors.values_list("name", flat=True))


def topology_is_used() -> Q:
    return Q(Exists(ResourceFlavor.objects.filter(cluster=OuterRef("cluster"), topology_name=OuterRef("name"))))


def of_check(cluster: Cluster, name: str) -> str:
    """ClusterQueues that require it."""
    queues = ClusterQueue.objects.filter(cluster=cluster, admission_checks__contains=[{"name": name}])
    return _listed("it is required by", queues.values_list("name", flat=True))


def check_is_used() -> Q:
    reference = Func(Value("name"), OuterRef("name"), function="jsonb_build_object", output_field=JSONField())
    queues = ClusterQueue.objects.filter(cluster=OuterRef("cluster"), admission_checks__contains=_in_array(reference))
    return Q(Exists(queues))


def of_cluster_queue(cluster: Cluster, name: str) -> str:
    """Workloads that hold its quota."""
    return _listed("quota is held in it by", _keys(_holders().filter(cluster=cluster, cluster_queue_name=name)))


def cluster_queue_is_used() -> Q:
    return Q(Exists(_holders().filter(cluster=OuterRef("cluster"), cluster_queue_name=OuterRef("name"))))


def of_namespace(cluster: Cluster, name: str) -> str:
    """Return the contents of the namespace, except jobs and workloads that have ended: these are history, which
    outlives the namespace."""
    inside = {"cluster": cluster, "namespace": name}
    return (
        _listed("it has the LocalQueues", LocalQueue.objects.filter(**inside).values_list("name", flat=True))
        or _listed("it has the workloads", _keys(Workload.objects.filter(**inside).exclude(status="Finished")))
        or _listed("it has the ResourceQuotas", ResourceQuota.objects.filter(**inside).values_list("name", flat=True))
        or _listed("it has the LimitRanges", LimitRange.objects.filter(**inside).values_list("name", flat=True))
    )


def namespace_is_used() -> Q:
    inside = {"cluster": OuterRef("cluster"), "namespace": OuterRef("name")}
    used = Q(Exists(Workload.objects.filter(**inside).exclude(status="Finished")))
    for model in (LocalQueue, ResourceQuota, LimitRange):
        used |= Q(Exists(model.objects.filter(**inside)))
    return used


def _holders() -> QuerySet[Workload]:
    return Workload.objects.filter(quota_reserved_at__isnull=False).exclude(status="Finished")


def _in_array(value: Any) -> Func:
    """Return a JSON array that contains only this value."""
    return Func(value, function="jsonb_build_array", output_field=JSONField())


def _keys(workloads: Any) -> list[str]:
    return [f"{namespace}/{name}" for namespace, name in workloads.values_list("namespace", "name")[: _SHOWN + 1]]


def _listed(words: str, names: Any) -> str:
    found = list(names[: _SHOWN + 1])
    if not found:
        return ""
    more = " and others" if len(found) > _SHOWN else ""
    return f"{words} {', '.join(found[:_SHOWN])}{more}"
