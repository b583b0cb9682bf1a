"""The leader's steps in the trace of a submission: it was read, and it was decided."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime

from foundation import tracing
from queues.models import Workload
from scheduler.store.batch import Batch
from scheduling.model.vocabulary import DecisionKind


class DecisionTraces:
    """Records the steps of workloads whose submission is traced; does nothing if no traces are sent."""

    def __init__(self, cluster_id: int) -> None:
        self._cluster_id = cluster_id
        self._taken_in: dict[int, datetime] = {}
        """When each pending workload was first read: row id -> time."""

    def took_in(self, ids: Collection[int], at: float) -> None:
        """Note these changed workloads. New workloads among them have waited for the scheduler until now."""
        if not ids or not tracing.is_configured():
            return
        now = datetime.fromtimestamp(at, UTC)
        new = Workload.objects.filter(pk__in=ids, admitted_at=None, eviction_counts=[], finished_at=None)
        rows = new.exclude(traceparent="").values_list("id", "traceparent", "created_at", "namespace", "name")
        found = set()
        for pk, traceparent, created_at, namespace, name in rows:
            found.add(pk)
            if pk not in self._taken_in:
                self._taken_in[pk] = now
                attributes = {"k8s.namespace.name": namespace, "kueueweb.workload": name}
                tracing.record("taken in", traceparent, created_at, now, attributes)
        for pk in set(ids) - found:
            self._taken_in.pop(pk, None)

    def decided(self, batch: Batch, at: float) -> None:
        """Record the admissions of a batch that has been committed."""
        if not tracing.is_configured():
            return
        cycles = {
            decision.workload.key: decision.cycle
            for decision in batch.decisions
            if decision.action == DecisionKind.ADMIT
        }
        ids = {write.id: write for write in batch.workloads if write.workload.key in cycles}
        rows = Workload.objects.filter(pk__in=ids).exclude(traceparent="")
        for pk, traceparent, created_at in rows.values_list("id", "traceparent", "created_at"):
            write = ids[pk]
            attributes: tracing.Attributes = {
                "k8s.namespace.name": write.workload.namespace,
                "kueueweb.workload": write.workload.name,
                "kueueweb.cluster_queue": write.cluster_queue,
                "kueueweb.cycle": cycles[write.workload.key],
            }
            waited_from = self._taken_in.pop(pk, created_at)
            tracing.record("decided", traceparent, waited_from, datetime.fromtimestamp(at, UTC), attributes)
