"""Slurm's multifactor priority."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.model.cohort import PriorityWeights
from scheduling.model.vocabulary import Unscaled
from scheduling.policies.multifactor import MAX_PRIORITY, ClusterSize, Job, multifactor_priority

WEIGHTS = PriorityWeights(
    age=1000, fair_share=10000, job_size=1000, partition=1000, qos=2000, resources={"cpu": 1000, "gpu": 5000}
)
SIZE = ClusterSize(nodes=100, cpus=6400, resources={"cpu": 6400, "gpu": 400}, highest_partition=40, highest_qos=100)
JOB = Job(86400, 0.5, 10, 640, partition=20, qos=50, resources={"cpu": 640, "gpu": 40}, nice=100)
NUMBERS = st.integers(0, 10**6)
JOBS = st.builds(
    Job,
    NUMBERS,
    st.floats(0, 1),
    st.integers(0, 100),
    st.integers(0, 6400),
    st.none() | st.integers(0, 10**4),
    resources=st.fixed_dictionaries({"cpu": st.integers(0, 6400), "gpu": st.integers(0, 400)}),
    qos=st.integers(0, 100),
    partition=st.integers(0, 40),
    nice=st.integers(0, 10**4),
)
ALL_WEIGHTS = st.builds(
    PriorityWeights, NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS,
    favor_small=st.booleans(), relative_to_time=st.booleans(), unscaled=st.frozensets(st.sampled_from(Unscaled)),
)  # fmt: skip


def test_the_parts_add_up() -> None:
    found = multifactor_priority(WEIGHTS, SIZE, JOB)
    assert found.priority == 7242
    assert found.age == pytest.approx(142.857, abs=1e-3)
    assert (found.fair_share, found.job_size) == (5000, 100)
    assert (found.partition, found.qos, found.resources) == (500, 1000, {"cpu": 100, "gpu": 500})


def test_a_small_job_may_be_favored() -> None:
    found = multifactor_priority(replace(WEIGHTS, favor_small=True), SIZE, JOB)
    assert found.job_size == 900


def test_a_size_relative_to_time_needs_a_time_limit() -> None:
    weights = replace(WEIGHTS, relative_to_time=True)
    assert multifactor_priority(weights, SIZE, JOB).job_size == 0
    assert multifactor_priority(weights, SIZE, replace(JOB, time_limit_minutes=10)).job_size == 10


def test_an_unknown_number_of_nodes_leaves_the_size_to_the_cpus() -> None:
    assert multifactor_priority(WEIGHTS, replace(SIZE, nodes=0), JOB).job_size == 100


def test_an_unscaled_factor_counts_as_it_is() -> None:
    raw = replace(WEIGHTS, unscaled=frozenset({Unscaled.QOS}))
    assert multifactor_priority(raw, SIZE, JOB).qos == 2000 * 50


@given(ALL_WEIGHTS, JOBS)
def test_a_priority_is_a_whole_number_of_at_least_one(weights: PriorityWeights, job: Job) -> None:
    found = multifactor_priority(weights, SIZE, job)
    parts = (found.age, found.association, found.fair_share, found.job_size, found.partition, found.qos)
    assert 1 <= found.priority <= MAX_PRIORITY
    total = sum(parts) + sum(found.resources.values()) - job.nice
    assert found.priority == max(1, min(MAX_PRIORITY, int(total)))


@given(ALL_WEIGHTS, JOBS, st.integers(1, 10**6))
def test_waiting_never_lowers_a_priority_and_being_nice_never_raises_it(
    weights: PriorityWeights, job: Job, more: int
) -> None:
    now = multifactor_priority(weights, SIZE, job).priority
    assert multifactor_priority(weights, SIZE, replace(job, waited_seconds=job.waited_seconds + more)).priority >= now
    assert multifactor_priority(weights, SIZE, replace(job, nice=job.nice + more)).priority <= now
