"""Events of workloads in a cluster that another scheduler runs, each stored once."""

import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from accounts.models import Cluster
from queues.models import WorkloadEvent


@dataclass(frozen=True, slots=True)
class MirroredEvent:
    """An event of a workload in the cluster; the fields are columns of the row."""

    workload_uid: uuid.UUID
    namespace: str
    workload_name: str
    at: datetime
    type: str
    reason: str
    message: str
    actor: str


def store_events(cluster: Cluster, events: Sequence[MirroredEvent]) -> None:
    """Add the events that are not stored yet: lists repeat them."""
    if not events:
        return
    uids = {event.workload_uid for event in events}
    rows = WorkloadEvent.objects.filter(cluster=cluster, workload_uid__in=uids, at__gte=min(each.at for each in events))
    known = set(rows.values_list("workload_uid", "at", "reason", "message"))
    news = {(each.workload_uid, each.at, each.reason, each.message): each for each in events}
    WorkloadEvent.objects.bulk_create(
        WorkloadEvent(cluster=cluster, **asdict(news[key]))
        for key in sorted(news.keys() - known, key=lambda key: (key[1], str(key[0]), *key[2:]))
    )
