"""What the cluster has to hear of: a workload whose push sequence is above the one that was pushed."""

from __future__ import annotations

from django.db import transaction
from django.db.models import F, QuerySet

from queues.models import Workload


def raise_push(workloads: QuerySet[Workload]) -> int:
    """Have the cluster told of these workloads again, and answer how many they are.

    The rows are locked in the order of their keys, as every writer of several workloads locks them: an UPDATE alone
    takes them in any order, and two of them can wait for each other.
    """
    with transaction.atomic():
        locked = list(workloads.order_by("pk").select_for_update(no_key=True).values_list("pk", flat=True))
        return Workload.objects.filter(pk__in=locked).update(push_sequence=F("push_sequence") + 1)
