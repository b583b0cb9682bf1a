"""The table of the costs of a Job."""

import itertools
from collections import Counter

from kueueweb.loadtest.shape import arrivals
from tests.beside_kueue.costs import Measured, requests_of, shape_of, table


def test_jobs_arrive_evenly_at_the_rate() -> None:
    shape = shape_of(4.0, 2)
    times = [arrival.at_seconds for arrival in arrivals(shape)]
    assert len(times) == 60
    gaps = {round(later - earlier, 6) for earlier, later in itertools.pairwise(times)}
    assert gaps == {0.25}


def test_only_the_deciders_own_requests_count_and_no_watch() -> None:
    audited = Counter(
        {
            ("system:serviceaccount:kueueweb:kueueweb-push", "patch", "jobs"): 10,
            ("system:serviceaccount:kueueweb:kueueweb-watcher", "watch", "jobs"): 3,
            ("system:serviceaccount:kube-system:job-controller", "create", "pods"): 10,
            ("admin", "create", "jobs"): 10,
        }
    )
    assert requests_of(audited, ("system:serviceaccount:kueueweb:",), 10) == {"patch jobs": 1.0}


def test_a_line_has_the_sum_and_its_parts() -> None:
    found = Measured("ours", 4.0, 60, 4.0, 0.5, 0.9, {"patch jobs": 1.0}, {"web": 1.5, "push": 2.0}, {"web": 100})
    *_, line = table([found]).splitlines()
    assert line == "| ours | 4 | 4.00 | 0.50, 0.90 | 1.00 | 3.5 | web 1.5, push 2.0 | 100 |"


def test_at_rest_nothing_starts() -> None:
    *_, line = table([Measured("ours", 0.0, processor={"web": 1.5})]).splitlines()
    assert line == "| ours | at rest, a second | - | -, - | 0.00 | 1.5 | web 1.5 | 0 |"
