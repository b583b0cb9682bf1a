"""Cancelled or deleted jobs: their rows stay until the cluster has deleted them; then their names are free."""

from collections.abc import Collection, Iterable

from django.db.models import F, Q

from accounts.models import Cluster
from queues.manifests.pod_group import POD
from queues.models import Job, Workload
from scheduling.model.vocabulary import WorkloadStatus

JobKey = tuple[str, str, str]
"""(kind, namespace, name)."""


def free_names(cluster: Cluster, keys: Iterable[JobKey]) -> None:
    """Delete withdrawn jobs of these names if their workloads have finished and the withdrawal was pushed.

    The finished workloads stay as history, without a job. A group of pods is deleted whole, with the first of its
    names.
    """
    wanted = set(keys)
    wanted |= _groups_of(cluster, {(namespace, name) for kind, namespace, name in wanted if kind == POD})
    if not wanted:
        return
    at_work = Workload.objects.exclude(
        Q(pushed_sequence=0) | Q(pushed_sequence__gte=F("push_sequence")), status=WorkloadStatus.FINISHED
    )
    rows = (
        Job.objects.filter(
            cluster=cluster, deletion_requested_at__isnull=False, name__in={name for _, _, name in wanted}
        )
        .exclude(pk__in=at_work.filter(job__isnull=False).values("job"))
        .select_for_update()
        .order_by("pk")
    )
    gone = [row.pk for row in rows if (row.kind, row.namespace, row.name) in wanted]
    if gone:
        Workload.objects.filter(job__in=gone).update(job=None)
        Job.objects.filter(pk__in=gone).delete()


def _groups_of(cluster: Cluster, pods: Collection[tuple[str, str]]) -> set[JobKey]:
    """The withdrawn groups of pods with these namespaces and names."""
    if not pods:
        return set()
    rows = Job.objects.filter(
        cluster=cluster, name__in={name for _, name in pods}, group__deletion_requested_at__isnull=False
    ).select_related("group")
    groups = {row.group for row in rows if (row.namespace, row.name) in pods and row.group is not None}
    return {(group.kind, group.namespace, group.name) for group in groups}
