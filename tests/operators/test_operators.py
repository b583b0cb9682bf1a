"""Jobs that operators of real releases run: they wait, start, are preempted, run again and end."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusters.jobs.registry import JOB_KINDS
from tests.clusters.every_kind import pods_of
from tests.clusters.webhook.served import ServedWebhook
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.operators import install_definitions
from tests.kubernetes.system import System
from tests.kubernetes.test_kinds import end_all, end_the_higher_one, make, make_all, name_of, preempt_all, running
from tests.operators.released import KINDS, RELEASES, ReleasedOperator

_PATIENCE = 240.0


@pytest.fixture
def operators(system: System, plane: ControlPlane, tmp_path: Path) -> Iterator[list[ReleasedOperator]]:
    """All of them at work; none has ended when the test has, and no job is left."""
    install_definitions(system.admin)
    with contextlib.ExitStack() as ending:
        started = [ending.enter_context(ReleasedOperator(release, plane, tmp_path)) for release in RELEASES]
        yield started
        for kind in KINDS:
            for item in system.admin.list(JOB_KINDS[kind].resource, "team").items:
                system.admin.delete(JOB_KINDS[kind].resource, "team", item["metadata"]["name"])
        for each in started:
            each.check()


def until_running(system: System, operators: list[ReleasedOperator], wanted: dict[str, int]) -> None:
    try:
        system.until(f"running: {wanted}", lambda: running(system) == wanted, _PATIENCE)
    except AssertionError as late:
        said = "\n".join(each.said() for each in operators)
        raise AssertionError(f"running: {running(system)} instead of {wanted}\n{late}\n{said}") from late


def test_jobs_of_released_operators_are_preempted_run_again_and_end(
    system: System, plane: ControlPlane, operators: list[ReleasedOperator], webhook: ServedWebhook
) -> None:
    wanted = make_all(system, plane, KINDS)
    until_running(system, operators, wanted)
    preempt_all(system, plane)
    end_the_higher_one(system)
    until_running(system, operators, wanted)
    end_all(system, plane, wanted)


def test_a_leader_worker_set_is_scaled(
    system: System, plane: ControlPlane, operators: list[ReleasedOperator], webhook: ServedWebhook
) -> None:
    """Each group is a workload: one more is admitted by itself, and one less gives its quota back."""
    make(plane, "LeaderWorkerSet")
    per_group = pods_of("LeaderWorkerSet")
    until_running(system, operators, {"LeaderWorkerSet": per_group})
    scale = ("scale", "leaderworkerset", name_of("LeaderWorkerSet"), "--namespace", "team")
    plane.kubectl(*scale, "--replicas=2")
    system.until("two groups run", lambda: system.phases() == ["Running"] * 2 * per_group, _PATIENCE)
    plane.kubectl(*scale, "--replicas=1")
    system.until("one group runs", lambda: system.phases() == ["Running"] * per_group, _PATIENCE)
