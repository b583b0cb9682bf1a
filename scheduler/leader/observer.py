"""The World of a cluster that another scheduler runs: kept in step with its rows and shown, never decided on.

The other scheduler's decisions are derived from the changes of its workloads and written to the decision log like
kueueweb's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from accounts.models import Cluster, ClusterMode
from foundation.postgresql.joined_statements import JoinedStatements
from foundation.transactions import unnoticed_transaction
from scheduler.leader.engine import RUN_SECONDS, Engine, Run
from scheduler.leader.shadow import ShadowFollower
from scheduler.store.batch import Batch, DecisionRow
from scheduler.store.changes import FORGET_CHANGES, LIMIT, Changes, read_changes
from scheduler.store.lease import fence, renew
from scheduler.store.rows import write_log
from scheduling.model.vocabulary import ConditionType, DecisionKind, EvictionReason
from scheduling.model.workload import Condition, Workload

HOUSEKEEPING_SECONDS = 2.0


class Observer(Engine):
    """Follows one cluster for as long as this process leads."""

    _shadow: ShadowFollower | None = None

    def _configure(self, cluster: Cluster) -> None:
        super()._configure(cluster)
        self._decides_beside = cluster.mode == ClusterMode.SHADOW
        if self._shadow is not None:
            self._shadow.configure(cluster, self._clock())

    def run(self, run_seconds: float = RUN_SECONDS) -> Run:
        """Catch up with the rows and publish the numbers. Raises `LeaseLost`."""
        now = self._clock()
        self.world.advance(now)
        changes = read_changes(self.cluster_id, LIMIT)
        keys = changes.by_kind.get("workload", {}).values()
        before = {key: self.world.workload(key) for key in keys}
        self._catch_up(changes, now)
        self.rows.due.clear()
        self.rows.ended.clear()
        decisions = [found for key in before for found in self._decided(key, before[key])]
        self._decide_beside(changes, before, now)
        if changes:
            with unnoticed_transaction() as cursor:
                fence(self.cluster_id, self.epoch)
                statements = JoinedStatements(cursor)
                write_log(statements, self._log_of(decisions))
                statements.execute(FORGET_CHANGES, [list(changes.ids)])
                statements.send()
            self.frames.touch(before)
        if self._steady() >= self._keep_house_at:
            renew(self.cluster_id, self.epoch)
            self._keep_house_at = self._steady() + HOUSEKEEPING_SECONDS
        self.frames.publish(self.world, self.rows, now)
        self._gauges.publish(self.world)
        admitted = sum(found.action == DecisionKind.ADMIT for found in decisions)
        preempted = sum(found.action == DecisionKind.PREEMPT for found in decisions)
        return Run(1, 0, admitted, preempted, 0, len(changes.ids) >= LIMIT)

    def _decide_beside(self, changes: Changes, workloads: Iterable[str], now: float) -> None:
        """In mode shadow: ask our own cycles at each decision of the other scheduler."""
        if not self._decides_beside:
            self._shadow = None
        elif self._shadow is None:
            self._shadow = ShadowFollower(Cluster.objects.get(pk=self.cluster_id), now)
        else:
            if changes:
                self._shadow.note(changes, workloads, now)
            self._shadow.follow(self.world, now)

    def _log_of(self, decisions: list[DecisionRow]) -> Batch:
        return Batch(self.cluster_id, self.cluster_name, self.epoch, self._generation, decisions=decisions)

    def _decided(self, key: str, before: Workload | None) -> Iterator[DecisionRow]:
        """Yield the decisions about a workload since it was last compared. A deleted workload has none."""
        after = self.world.workload(key)
        if after is None:
            return
        queue = after.admission.cluster_queue if after.admission else self.rows.cluster_queue_of(after)
        reserved = _newly_true(before, after, ConditionType.QUOTA_RESERVED)
        if reserved is not None:
            reason = "Admitted" if after.is_true(ConditionType.ADMITTED) else "QuotaReserved"
            yield _row(after, reserved, DecisionKind.ADMIT, queue, reason, {"pod_sets": _given(after)})
        evicted = _newly_true(before, after, ConditionType.EVICTED)
        if evicted is not None:
            preempted = after.condition(ConditionType.PREEMPTED)
            if evicted.reason == EvictionReason.PREEMPTED and preempted is not None:
                yield _row(after, preempted, DecisionKind.PREEMPT, queue, str(preempted.reason), {})
            else:
                yield _row(after, evicted, DecisionKind.EVICT, queue, str(evicted.reason), {})


def _newly_true(before: Workload | None, after: Workload, type_: ConditionType) -> Condition | None:
    """Return the condition, if it became true between the two states, also again at another time, or is true in a
    workload that was not known before."""
    condition = after.condition(type_)
    if condition is None or not after.is_true(type_):
        return None
    if before is None:
        return condition
    earlier = before.condition(type_)
    if earlier is None or not before.is_true(type_):
        return condition
    return None if earlier.last_transition_time == condition.last_transition_time else condition


def _given(workload: Workload) -> list[Mapping[str, object]]:
    assignments = workload.admission.pod_set_assignments if workload.admission else ()
    return [{"name": each.name, "count": each.count, "flavors": dict(each.flavors)} for each in assignments]


def _row(
    workload: Workload,
    condition: Condition,
    kind: DecisionKind,
    queue: str,
    reason: str,
    detail: dict[str, object],
) -> DecisionRow:
    return DecisionRow(workload, condition.last_transition_time, 0, kind, queue, reason, condition.message, detail)
