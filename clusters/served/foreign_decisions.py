"""Finds the decisions that another program writes into the status of a Workload that kueueweb serves, and carries them
out by Kueue's rules."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from accounts.models import AuditVerb, Cluster
from accounts.services.audit import record
from clusters.api_objects import JsonObject
from clusters.served.contents import status_writer
from queues.models import Workload
from queues.services.workloads import mark_for_deactivation, record_finished, requeue
from scheduling.model.vocabulary import ConditionType, EvictionReason, FinishedReason

_log = logging.getLogger(__name__)

_MAX_ACTOR: Final = 150
_MAX_REASON: Final = 64
_MAX_MESSAGE: Final = 1024
_CLEARED: Final = "Its admission was cleared"


class _Act(StrEnum):
    EVICT = "Evicted"
    DEACTIVATE = "DeactivationTarget"
    FINISH = "Finished"


@dataclass(frozen=True, slots=True)
class ForeignDecision:
    """A condition that another program has set, or the admission that it has cleared."""

    act: _Act
    reason: str
    message: str
    actor: str


def foreign_decisions(before: Mapping[str, Any], obj: JsonObject) -> list[ForeignDecision]:
    """Return the decisions in the object's status that were not in the known status `before`.

    Kueue acts on these conditions, whichever program sets them: Evicted (its job stops and waits again),
    DeactivationTarget (spec.active becomes false) and Finished; and on a cleared admission. Our row overwrites all
    other fields, except the states of admission checks, which their controllers write.
    """
    return [*_conditions(before, obj), *_cleared(before, obj)]


def _conditions(before: Mapping[str, Any], obj: JsonObject) -> Iterator[ForeignDecision]:
    old, new = _true(before), _true(obj.get("status") or {})
    for act in _Act:
        found = new.get(act)
        if found is not None and act not in old:
            reason, message = str(found.get("reason") or ""), str(found.get("message") or "")
            yield ForeignDecision(act, reason[:_MAX_REASON], message[:_MAX_MESSAGE], _actor(obj, act))


def _cleared(before: Mapping[str, Any], obj: JsonObject) -> Iterator[ForeignDecision]:
    status = obj.get("status") or {}
    held = before.get("admission") and ConditionType.QUOTA_RESERVED in _true(before)
    if held and not (status.get("admission") and ConditionType.QUOTA_RESERVED in _true(status)):
        yield ForeignDecision(_Act.EVICT, EvictionReason.REQUEUE_REQUESTED, _CLEARED, _actor(obj, ""))


def take_decisions(cluster: Cluster, row: Workload, decisions: list[ForeignDecision], now: datetime) -> None:
    """Make the engine carry out the decisions, in the name of the program that wrote them."""
    for each in decisions:
        if each.act is _Act.EVICT:
            reason, message = _eviction(each)
            requeue(cluster, [_key(row)], actor=each.actor, reason=reason, message=message, now=now)
        elif each.act is _Act.DEACTIVATE:
            mark_for_deactivation(cluster, [_key(row)], each.reason, each.message, actor=each.actor, now=now)
        elif row.job_id is None:
            ending, message = _end(each)
            record_finished(cluster, [_key(row)], ending, message, actor=each.actor, now=now)
        elif row.finished_at is None and row.ending is None:
            _refuse(cluster, row, each)


def _refuse(cluster: Cluster, row: Workload, found: ForeignDecision) -> None:
    """Report that the condition Finished is overwritten: with it, the quota would be given to others while the job runs
    on."""
    message = (
        f"status.conditions: Finished was written by {found.actor} and is written back: the workload ends with its "
        "job. Delete the job, or set spec.active to false."
    )
    _log.warning("Workload %s of cluster %s: %s", row.key, cluster.name, message)
    record(AuditVerb.REFUSED, "Workload", cluster=cluster.name, namespace=row.namespace, name=row.name, message=message)


def _eviction(found: ForeignDecision) -> tuple[EvictionReason, str]:
    """Kueue would never requeue a workload with a reason that it does not know: we keep that in the message."""
    if found.reason in set(EvictionReason):
        return EvictionReason(found.reason), found.message or f"Evicted by {found.actor}"
    return EvictionReason.REQUEUE_REQUESTED, f"{found.reason}: {found.message}"


def _end(found: ForeignDecision) -> tuple[FinishedReason, str]:
    if found.reason in set(FinishedReason):
        return FinishedReason(found.reason), found.message
    return FinishedReason.SUCCEEDED, f"{found.reason}: {found.message}"


def _true(status: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    conditions = status.get("conditions") or ()
    return {each["type"]: each for each in conditions if each.get("type") and each.get("status") == "True"}


def _actor(obj: JsonObject, condition: str) -> str:
    return f"{status_writer(obj, condition)} in the cluster"[:_MAX_ACTOR]


def _key(row: Workload) -> tuple[str, str]:
    return row.namespace, row.name
