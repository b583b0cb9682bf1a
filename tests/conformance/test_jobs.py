"""What Kueue's webhooks, job classes and controllers were recorded to make of jobs of every kind."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from clusters.jobs.scenario import integrate
from tests.conformance.job_results import comparable

FILES = sorted(Path(__file__).parent.glob("jobs/*.json.gz"))


def test_the_recordings_are_there() -> None:
    assert FILES


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.removesuffix(".json.gz"))
def test_jobs_fare_as_recorded(path: Path) -> None:
    """Every section of every scenario. What panics in Kueue (`panic`) is only not to be a list of pod sets."""
    for case in json.loads(gzip.decompress(path.read_bytes())):
        result = integrate(case["input"])
        for section, expected in case["expected"].items():
            if section == "podSets" and "panic" in expected:
                assert not isinstance(result[section], list), case["id"]
                continue
            assert comparable(section, result[section]) == comparable(section, expected), f"{case['id']} {section}"
