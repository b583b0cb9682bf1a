"""Prepares a question in the studio, with the database, so that a child can try it without."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from accounts.models import Cluster
from foundation.exceptions import NotFound
from queues.models import WorkloadPriorityClass
from scheduler.store.kept_world import kept_world
from scheduling.studio.plan_effects import FirstAnswer, what_if
from scheduling.studio.plan_effects_json import first_json, what_if_json
from scheduling.studio.remedies import find_remedies
from scheduling.studio.remedies_json import remedies_json
from scheduling.studio.world_changes import Change
from scheduling.world import World
from studio.models import Question, QuestionKind
from studio.services.children import GoOn, Tell, Work
from studio.services.looking_ahead import Ahead, hours_of_plan
from studio.services.past_explanations import explain_past
from studio.services.planned_changes import planned_changes
from studio.services.plans import read_plan
from studio.services.run_histories import RunHistories


@dataclass(frozen=True, slots=True)
class Trial:
    """The work of a child, and the state of the cluster on which it is done."""

    work: Work
    configuration_generation: int
    tried_at: datetime
    basis: Mapping[str, Any] | None = None
    """The versions on which the answer to a plan rests; None for another question."""


def prepare_trial(question: Question, histories: RunHistories) -> Trial:
    """Update the stored World of the question's cluster, and the ended runs that it needs.

    Raises NotFound if its object is gone, and the errors of `planned_changes`. The generation is read before the rows,
    so the trial is of this generation or a newer one.
    """
    cluster = Cluster.objects.get(pk=question.cluster_id)
    now = time.time()
    work, basis = _PREPARED[QuestionKind(question.kind)](question, cluster, now, histories)
    return Trial(work, cluster.configuration_generation, datetime.fromtimestamp(now, UTC), basis)


_Prepared = tuple[Work, Mapping[str, Any] | None]


def _remedies(question: Question, cluster: Cluster, now: float, _: RunHistories) -> _Prepared:
    key = f"{question.inputs['namespace']}/{question.inputs['name']}"
    with kept_world(cluster, now) as world:
        known = world.workload(key) is not None
    if not known:
        raise NotFound(f"There is no unfinished Workload {key}.")
    classes = WorkloadPriorityClass.objects.filter(cluster=question.cluster_id)
    return partial(_try_remedies, world, key, now, dict(classes.values_list("name", "value"))), None


def _try_remedies(
    world: World, key: str, now: float, priorities: Mapping[str, int], go_on: GoOn, tell: Tell
) -> Mapping[str, Any]:
    return remedies_json(find_remedies(world, key, now, priorities, go_on))


def _what_if(question: Question, cluster: Cluster, now: float, histories: RunHistories) -> _Prepared:
    planned = planned_changes(cluster, read_plan(question.inputs["plan"]), question.user, now)
    hours = int(question.inputs.get("hours", 0))
    ahead = Ahead(hours, histories.of(cluster), cluster.pk) if hours else None
    return partial(try_what_if, planned.world, planned.changes, now, ahead=ahead), planned.basis


def try_what_if(
    world: World, changes: Sequence[Change], now: float, go_on: GoOn, tell: Tell, ahead: Ahead | None = None
) -> Mapping[str, Any]:
    """Try the changes; report the first answer, and return both. With `ahead`, report both, and add the hours ahead."""
    first: dict[str, Any] = {}

    def tell_first(found: FirstAnswer) -> None:
        first.update(first_json(found))
        tell(first)

    answer = what_if_json(what_if(world, changes, now, go_on, tell_first), first)
    if ahead is None:
        return answer
    tell(answer)
    return answer | {"hours": hours_of_plan(world, changes, now, ahead, go_on)}


def _explain_past(question: Question, cluster: Cluster, now: float, _: RunHistories) -> _Prepared:
    moment = datetime.fromisoformat(question.inputs["at"])
    return partial(_try_past, question.cluster_id, question.inputs["namespace"], question.inputs["name"], moment), None


def _try_past(cluster_id: int, namespace: str, name: str, at: datetime, go_on: GoOn, tell: Tell) -> Mapping[str, Any]:
    return explain_past(Cluster.objects.get(pk=cluster_id), namespace, name, at)


_PREPARED: Final[Mapping[QuestionKind, Callable[[Question, Cluster, float, RunHistories], _Prepared]]] = {
    QuestionKind.REMEDIES: _remedies,
    QuestionKind.WHAT_IF: _what_if,
    QuestionKind.PREVIEW: _what_if,
    QuestionKind.EXPLAIN_PAST: _explain_past,
}
