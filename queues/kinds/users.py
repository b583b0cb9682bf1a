"""What still holds an object, in words: it is deleted when nothing does. Empty: it may go."""

from typing import Any, Final

from django.db.models import Q

from accounts.models import Cluster
from queues.models import (
    ClusterQueue,
    Job,
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


def of_topology(cluster: Cluster, name: str) -> str:
    flavors = ResourceFlavor.objects.filter(cluster=cluster, topology_name=name)
    return _listed("it is the topology of", flavors.values_list("name", flat=True))


def of_check(cluster: Cluster, name: str) -> str:
    """ClusterQueues that ask for it."""
    queues = ClusterQueue.objects.filter(cluster=cluster, admission_checks__contains=[{"name": name}])
    return _listed("it is required by", queues.values_list("name", flat=True))


def of_cluster_queue(cluster: Cluster, name: str) -> str:
    """Workloads that hold its quota."""
    holders = Workload.objects.filter(cluster=cluster, cluster_queue_name=name, quota_reserved_at__isnull=False)
    return _listed("quota is held in it by", _keys(holders.exclude(status="Finished")))


def of_namespace(cluster: Cluster, name: str) -> str:
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


def _listed(words: str, names: Any) -> str:
    found = list(names[: _SHOWN + 1])
    if not found:
        return ""
    more = " and others" if len(found) > _SHOWN else ""
    return f"{words} {', '.join(found[:_SHOWN])}{more}"
