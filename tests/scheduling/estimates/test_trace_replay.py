"""The replay of a trace: the queue's rule, the estimates, and that they know nothing of the future."""

from dataclasses import replace
from typing import Any, cast

import pytest

from scheduling.estimates.snapshot import Unknown
from scheduling.estimates.trace_replay import TracePod, judged_replay, placements, replay
from tests.scheduling.estimates.traces import small_trace


def _pod(name: str, created: int, run: int, devices: int) -> TracePod:
    return TracePod(name, created, run, devices, ("all",))


def test_a_smaller_pod_behind_passes_one_that_does_not_fit() -> None:
    pods = [_pod("a", 0, 100, 5), _pod("b", 1, 100, 4), _pod("c", 2, 10, 3)]
    assert [placed.start for placed in placements(pods, 8)] == [0, 100, 2]


def test_the_fullest_node_that_fits_is_taken_the_first_of_equal_ones() -> None:
    pods = [_pod("a", 0, 100, 6), _pod("b", 1, 100, 2), _pod("c", 2, 100, 8)]
    assert [placed.node for placed in placements(pods, 16)] == [0, 0, 1]


def test_what_ends_at_a_moment_is_free_at_it() -> None:
    pods = [_pod("a", 0, 50, 8), _pod("b", 50, 1, 8)]
    assert placements(pods, 8)[1].start == 50


@pytest.mark.parametrize(("devices", "gpus"), [(1, 12), (1, 0), (9, 16)])
def test_sizes_that_no_node_has_are_refused(devices: int, gpus: int) -> None:
    with pytest.raises(ValueError, match="Invalid value"):
        placements([_pod("a", 0, 1, devices)], gpus)


def test_estimates_do_not_change_when_the_future_does() -> None:
    pods = small_trace()
    cut = pods[150].created_at
    starts = placements(pods, 16)
    future = [
        # Runs that have not ended at the cut end otherwise; pods after it are others.
        replace(pod, run_seconds=pod.run_seconds * 7 + 5) if at.start + pod.run_seconds > cut else pod
        for pod, at in zip(pods, starts, strict=True)
        if pod.created_at <= cut or int(pod.name[-4:]) % 3
    ]
    before = [each for each in replay(pods, 16, 1) if each.made_at <= cut]
    changed = [each for each in replay(future, 16, 1) if each.made_at <= cut]
    assert len(before) > 30
    assert [(each.pod, each.stage, each.estimate, each.mean_wait, each.longest_runs) for each in changed] == [
        (each.pod, each.stage, each.estimate, each.mean_wait, each.longest_runs) for each in before
    ]
    assert [each.waited for each in changed] != [each.waited for each in before]


def test_the_same_seed_gives_the_same_answer_and_another_seed_another() -> None:
    pods = small_trace(100)
    assert judged_replay(pods, 16, 1) == judged_replay(pods, 16, 1)
    assert judged_replay(pods, 16, 1)["estimate"] != judged_replay(pods, 16, 2)["estimate"]


def test_each_pod_that_waits_is_judged_at_each_stage_that_it_reaches() -> None:
    pods = small_trace(100)
    starts = placements(pods, 16)
    waits = [at.start - pod.created_at for pod, at in zip(pods, starts, strict=True)]
    found = list(replay(pods, 16, 1))
    for stage in (0, 300, 900, 3600):
        assert sum(each.stage == stage for each in found) == sum(wait > stage for wait in waits)
    by_name = dict(zip((pod.name for pod in pods), waits, strict=True))
    assert all(each.stage + each.waited == by_name[each.pod] for each in found)


def test_without_an_ended_run_the_start_is_unknown() -> None:
    pods = [_pod("a", 0, 100, 8), _pod("b", 1, 100, 8)]
    [found] = replay(pods, 8, 1)
    assert found.estimate.unknown is Unknown.NO_RUN_ENDED
    judged = cast("dict[str, Any]", judged_replay(pods, 8, 1))
    assert judged["estimate"]["coverage"] == 0.0
    assert judged["estimate"]["median_error_seconds"] is None


def test_declared_times_make_the_error_smaller() -> None:
    pods = small_trace()
    exact = [replace(pod, declared_seconds=2.0 * pod.run_seconds) for pod in pods]
    without, with_them = judged_replay(pods, 16, 1), judged_replay(exact, 16, 1)
    assert cast("float", with_them["error_ratio_to_better_rival"]) < 0.6 * cast(
        "float", without["error_ratio_to_better_rival"]
    )
