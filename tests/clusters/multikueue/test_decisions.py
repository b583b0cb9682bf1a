"""What follows for a workload from what its workers say: dispatch, winner, loss, eviction, end."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from clusters.multikueue.decisions import Dispatch, Local, Verdict, Workers, decide
from clusters.multikueue.settings import Settings, read_settings
from clusters.multikueue.worker_copies import DIGEST, Copy, spec_digest
from scheduling.model.vocabulary import AdmissionCheckStatus

NOW = datetime(2026, 1, 5, 9, tzinfo=UTC)
SPEC: dict[str, Any] = {"queueName": "local", "podSets": [{"name": "main", "count": 2, "template": {}}]}
LOCAL = Local(wants=True, state=AdmissionCheckStatus.PENDING, digest=spec_digest(SPEC), priority=0)
READY = replace(LOCAL, state=AdmissionCheckStatus.READY)
NAMES = ["d", "c", "b", "a"]
RUNS_IN_C = Dispatch("r", cluster="c")


def copy(priority: int = 0, spec: dict[str, Any] = SPEC, made_of: dict[str, Any] = SPEC, **conditions: int) -> Copy:
    """A copy whose conditions hold since so many minutes past nine."""
    listed = [
        {
            "type": type_,
            "status": "True",
            "reason": "R",
            "message": "m",
            "lastTransitionTime": f"2026-01-05T09:{at:02}Z",
        }
        for type_, at in conditions.items()
    ]
    metadata = {"name": "w", "namespace": "team", "annotations": {DIGEST: spec_digest(made_of)}}
    return Copy({"metadata": metadata, "spec": {**spec, "priority": priority}, "status": {"conditions": listed}})


def verdict(
    local: Local = LOCAL,
    dispatch: Dispatch | None = None,
    now: datetime = NOW,
    settings: Settings | None = None,
    **copies: Copy | None,
) -> Verdict:
    return decide(local, dispatch or Dispatch("r"), Workers(NAMES, copies), settings or Settings(), now)


def test_all_at_once_sends_to_each_worker_within_reach() -> None:
    found = verdict(a=None, c=None, d=copy())
    assert (found.create, found.remove) == ({"a", "c"}, set())
    assert found.dispatch.nominated == ("d", "c", "a")
    again = verdict(dispatch=found.dispatch, a=copy(), c=copy(), d=copy())
    assert not again.create | again.remove | again.change
    assert again.dispatch == found.dispatch


def test_nothing_is_sent_before_the_other_checks_are_ready() -> None:
    assert not verdict(replace(LOCAL, others_ready=False), a=None).create


def test_incremental_adds_three_every_five_minutes() -> None:
    settings = read_settings({"multiKueue": {"dispatcherName": "kueue.x-k8s.io/multikueue-dispatcher-incremental"}})
    first = verdict(settings=settings, a=None, b=None, c=None, d=None)
    assert (first.create, first.dispatch.nominated) == ({"d", "c", "b"}, ("d", "c", "b"))
    later = NOW + timedelta(minutes=5)
    same = verdict(dispatch=first.dispatch, settings=settings, now=later, a=None, b=copy(), c=copy(), d=copy())
    assert not same.create
    then = later + timedelta(seconds=1)
    more = verdict(dispatch=first.dispatch, settings=settings, now=then, a=None, b=copy(), c=copy(), d=copy())
    assert (more.create, more.dispatch.nominated) == ({"a"}, ("d", "c", "b", "a"))
    assert more.dispatch.round_at == then


def test_the_size_of_a_round_is_configured() -> None:
    block = {
        "dispatcherName": "kueue.x-k8s.io/multikueue-dispatcher-incremental",
        "incrementalDispatcherConfig": {"stepSize": 1},
    }
    assert verdict(settings=read_settings({"multiKueue": block}), a=None, d=None).create == {"d"}
    off = read_settings({"multiKueue": block, "featureGates": {"MultiKueueIncrementalDispatcherConfig": False}})
    assert verdict(settings=off, b=None, d=None).create == {"b", "d"}


def test_without_its_gate_workers_are_nominated_by_their_names() -> None:
    block = {
        "dispatcherName": "kueue.x-k8s.io/multikueue-dispatcher-incremental",
        "incrementalDispatcherConfig": {"stepSize": 1},
    }
    gates = {"MultiKueueIncrementalDispatcherRespectConfigOrder": False}
    settings = read_settings({"multiKueue": block, "featureGates": gates})
    assert verdict(settings=settings, a=None, d=None).create == {"a"}


def test_the_first_that_admits_wins_and_the_others_are_withdrawn() -> None:
    found = verdict(a=copy(QuotaReserved=1, Admitted=3), b=copy(QuotaReserved=2, Admitted=2), c=copy(QuotaReserved=0))
    assert (found.run, found.remove, found.create) == ("b", {"a", "c"}, set())
    assert found.dispatch == Dispatch("r", cluster="b")
    assert found.answer is not None
    assert (found.answer.state, found.answer.message) == ("Ready", 'The workload was admitted on "b"')


def test_a_winner_stays_the_winner() -> None:
    found = verdict(READY, RUNS_IN_C, a=copy(Admitted=1), c=copy(Admitted=5))
    assert (found.run, found.remove) == ("c", {"a"})


def test_a_copy_that_is_evicted_where_it_runs_starts_over() -> None:
    found = verdict(READY, RUNS_IN_C, c=copy(Evicted=7))
    assert found.answer is not None
    assert found.answer.state == "Retry"
    assert found.answer.message == (
        'Workload evicted on worker cluster: "c", resetting for re-admission. Previously: "Ready"'
    )
    assert verdict(a=copy(Evicted=7), b=None).answer is None, "one that waits goes on waiting"


def test_the_end_of_a_copy_is_the_end() -> None:
    found = verdict(READY, RUNS_IN_C, c=copy(Admitted=1, Finished=9))
    assert (found.finish, found.run) == (("R", "m"), "c")


@pytest.mark.parametrize(
    ("copies", "message"),
    [
        ({"c": None}, "Reserving remote no longer exists or is not admitted"),
        ({"c": copy(made_of={"podSets": []}, Admitted=1)}, "Remote workload out of sync"),
    ],
)
def test_a_worker_within_reach_that_has_lost_it(copies: dict[str, Copy | None], message: str) -> None:
    found = decide(READY, RUNS_IN_C, Workers(NAMES, copies), Settings(), NOW)
    assert found.answer is not None
    assert (found.answer.state, found.answer.message) == ("Retry", message)


def test_a_worker_out_of_reach_keeps_it_for_as_long_as_is_configured() -> None:
    first = verdict(READY, RUNS_IN_C, a=None)
    assert (first.answer, first.create, first.dispatch.lost_since) == (None, set(), NOW)
    almost = verdict(READY, first.dispatch, now=NOW + timedelta(minutes=14, seconds=59), a=None)
    assert (almost.answer, almost.dispatch) == (None, first.dispatch)
    then = verdict(READY, first.dispatch, now=NOW + timedelta(minutes=15), a=None)
    assert then.answer is not None
    assert (then.answer.state, then.answer.message) == ("Retry", "Reserving remote lost")
    back = verdict(READY, first.dispatch, now=NOW + timedelta(minutes=5), c=copy(Admitted=1))
    assert (back.run, back.dispatch.lost_since) == ("c", None)
    soon = read_settings({"multiKueue": {"workerLostTimeout": "1m"}})
    assert verdict(READY, first.dispatch, now=NOW + timedelta(minutes=1), settings=soon, a=None).answer is not None


def test_without_quota_every_copy_goes_and_then_it_is_forgotten() -> None:
    evicted = replace(READY, wants=False)
    going = verdict(evicted, RUNS_IN_C, a=None, c=copy(Admitted=1))
    assert (going.remove, going.dispatch) == ({"c"}, RUNS_IN_C)
    assert verdict(evicted, RUNS_IN_C, a=None, c=None).dispatch == Dispatch()
    assert verdict(evicted, RUNS_IN_C, a=None).dispatch == Dispatch(), "a lost worker holds nothing up"


def test_a_copy_of_another_spec_is_made_anew_and_a_priority_is_changed() -> None:
    found = verdict(replace(LOCAL, priority=7), a=copy(), b=copy(made_of={"podSets": []}), c=copy(priority=7))
    assert (found.change, found.remove) == ({"a"}, {"b"})
    assert found.create == {"b"}
    resized = {**SPEC, "podSets": [{"name": "main", "count": 3, "template": {}}]}
    assert verdict(a=copy(spec=resized)).remove == {"a"}, "somebody has changed it in the worker"


def test_workloads_of_one_job_go_to_one_worker() -> None:
    assert verdict(replace(LOCAL, only=""), a=None, b=None).create == set()
    assert verdict(replace(LOCAL, only="b"), a=None, b=None).create == {"b"}
