"""Prepares a question in the studio, with the database, so that a child can try it without."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from accounts.models import Cluster
from foundation.exceptions import NotFound
from queues.models import WorkloadPriorityClass
from scheduler.store.kept_world import kept_world
from scheduling.studio.remedies import find_remedies
from scheduling.studio.remedies_json import remedies_json
from scheduling.world import World
from studio.models import Question, QuestionKind
from studio.services.children import GoOn, Work


@dataclass(frozen=True, slots=True)
class Trial:
    """The work of a child, and the state of the cluster on which it is done."""

    work: Work
    configuration_generation: int
    tried_at: datetime


def prepare_trial(question: Question) -> Trial:
    """Bring the kept World of the question's cluster up to date. Raises NotFound where its object is gone.

    The generation is read before the rows: what is tried is of this generation, or a newer one.
    """
    cluster = Cluster.objects.get(pk=question.cluster_id)
    now = time.time()
    with kept_world(cluster, now) as world:
        work = _PREPARED[QuestionKind(question.kind)](question, world, now)
    return Trial(work, cluster.configuration_generation, datetime.fromtimestamp(now, UTC))


def _remedies(question: Question, world: World, now: float) -> Work:
    key = f"{question.inputs['namespace']}/{question.inputs['name']}"
    if world.workload(key) is None:
        raise NotFound(f"There is no unfinished Workload {key}.")
    classes = WorkloadPriorityClass.objects.filter(cluster=question.cluster_id)
    return partial(_try_remedies, world, key, now, dict(classes.values_list("name", "value")))


def _try_remedies(world: World, key: str, now: float, priorities: Mapping[str, int], go_on: GoOn) -> Mapping[str, Any]:
    return remedies_json(find_remedies(world, key, now, priorities, go_on))


_PREPARED: Final[Mapping[QuestionKind, Callable[[Question, World, float], Work]]] = {QuestionKind.REMEDIES: _remedies}
