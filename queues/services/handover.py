"""Which jobs a Kueue would not know as ours if we let go of the cluster now."""

from accounts.models import Cluster
from queues.models import ServedObject, Workload
from scheduling.model.vocabulary import WorkloadStatus


def jobs_unknown_to_kueue(cluster: Cluster) -> list[str]:
    """The jobs that we started and whose Workload in the cluster does not say that they hold quota: a Kueue would stop
    them. A line for each, with the reason where the cluster refused it."""
    running = Workload.objects.filter(
        cluster=cluster, quota_reserved_at__isnull=False, job__isnull=False, pushed_sequence__gt=0
    ).exclude(status=WorkloadStatus.FINISHED)
    entries = ServedObject.objects.filter(cluster=cluster, kind="Workload").only("name", "uid", "status", "problem")
    told = {entry.key: entry for entry in entries}
    found = []
    for row in running.select_related("job").order_by("pk"):
        entry = told.get(row.key)
        if entry is not None and entry.uid and not entry.problem and (entry.status or {}).get("admission"):
            continue
        job = row.job
        why = (entry.problem if entry is not None else "") or "no Workload in the cluster says that it is admitted"
        found.append(f"{job.kind if job else 'Workload'} {row.namespace}/{job.name if job else row.name}: {why}")
    return found
