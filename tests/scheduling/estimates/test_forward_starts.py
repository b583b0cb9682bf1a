"""Forward runs start what the queue's own rule starts."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduling.estimates.forward_starts import ForwardRun
from scheduling.estimates.trace_replay import DEVICES_PER_NODE, TracePod, placements

ASKED = st.tuples(st.integers(1, 8), st.integers(1, 10_000))


@settings(max_examples=40, deadline=None)
@given(st.lists(ASKED, min_size=1, max_size=12))
def test_a_queue_of_known_run_times_starts_as_in_the_replay(asked: list[tuple[int, int]]) -> None:
    # Distinct powers keep sums of run times apart, so that no two ends fall together.
    pods = [TracePod(str(i), 0, run * 4096 + 2**i, devices, ()) for i, (devices, run) in enumerate(asked)]
    expected = [placed.start for placed in placements(pods, 16)]
    run = ForwardRun(
        np.full((2, 1), DEVICES_PER_NODE),
        np.empty((1, 0)),
        np.empty(0, dtype=np.int64),
        np.empty((0, 1), dtype=np.int64),
        np.array([[float(pod.run_seconds) for pod in pods]]),
        np.array([[pod.devices] for pod in pods]),
    )
    assert run.run()[0].tolist() == expected


def test_a_running_workload_gives_its_devices_back_on_its_own_place() -> None:
    run = ForwardRun(
        np.array([[0], [2]]),
        np.array([[10.0, 20.0]]),
        np.array([0, 0]),
        np.array([[4], [4]]),
        np.array([[5.0, 5.0]]),
        np.array([[8], [2]]),
    )
    assert run.run().tolist() == [[20.0, 0.0]]


def test_all_resources_must_fit_on_one_place() -> None:
    run = ForwardRun(
        np.array([[4, 0], [0, 4]]),
        np.array([[7.0]]),
        np.array([1]),
        np.array([[3, 0]]),
        np.array([[1.0, 1.0]]),
        np.array([[3, 3], [5, 0]]),
    )
    assert run.run().tolist() == [[7.0, np.inf]]
