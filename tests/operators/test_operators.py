"""Jobs that operators of real releases run: they wait, start, are preempted, run again, are resized and end."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusters.jobs.framework.job_kind import Stopping
from clusters.jobs.registry import JOB_KINDS
from queues.models import FlavorQuota
from tests.clusters.every_kind import pods_of
from tests.clusters.webhook.served import ServedWebhook
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.operators import install_definitions
from tests.kubernetes.our_webhook import our_webhook
from tests.kubernetes.system import System
from tests.kubernetes.test_kinds import HIGH, end, high_job, make, name_of, rows, running, statuses
from tests.operators.released import KINDS, RELEASES, ReleasedOperator

_PATIENCE = 240.0
_SERVING = tuple(kind for kind in KINDS if JOB_KINDS[kind].serves or JOB_KINDS[kind].stopping is Stopping.DELETE_PODS)


@pytest.fixture
def webhook(system: System, plane: ControlPlane) -> Iterator[ServedWebhook]:
    """It answers with the rights of its own account, and the API server asks it."""
    with our_webhook(plane, system.cluster) as served:
        yield served


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
    system.turn()
    system.apply(HIGH)
    FlavorQuota.objects.filter(resource="cpu").update(nominal_quota=9_000)
    wanted = {kind: pods_of(kind) for kind in KINDS}
    for kind in KINDS:
        make(plane, kind)
    assert not [pod for pod in system.pods() if not pod["spec"].get("schedulingGates")], "no pod before an admission"
    until_running(system, operators, wanted)

    plane.kubectl("create", "-f", "-", manifests=[high_job()])
    system.until("the higher one runs", lambda: system.phases("high") == ["Running"] * 4, _PATIENCE)
    assert not {kind for kind, row in rows().items() if row.quota_reserved_at and row.status != "Finished"}
    assert set(running(system).values()) == {0}
    end(system, "high")
    system.until("it has ended", lambda: system.status("high") == "Finished", _PATIENCE)
    until_running(system, operators, wanted)

    end(system)
    ending = set(KINDS) - {*_SERVING}
    system.until("what ends has ended", lambda: {statuses()[kind] for kind in ending} == {"Finished"}, _PATIENCE)
    for kind in _SERVING:
        assert running(system)[kind] == wanted[kind], kind
        plane.kubectl("delete", JOB_KINDS[kind].plural, name_of(kind), "--namespace", "team", "--wait=false")
    system.until("what served has ended", lambda: set(statuses().values()) == {"Finished"}, _PATIENCE)


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
