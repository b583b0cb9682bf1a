"""Which pods have ended by themselves, and how pods lose Kueue's finalizer."""

from __future__ import annotations

from typing import Any

import pytest

from clusters.jobs.plain_pods import ended_by_itself, released_pod


def ended(finished_at: str | None, deletion: str = "", grace: int = 30) -> dict[str, Any]:
    """A pod whose container ended then, and which is to be gone by `deletion`."""
    metadata: dict[str, Any] = {"uid": "1"}
    if deletion:
        metadata |= {"deletionTimestamp": deletion, "deletionGracePeriodSeconds": grace}
    state = {"terminated": {"finishedAt": finished_at}} if finished_at else {"running": {}}
    return {"metadata": metadata, "status": {"phase": "Succeeded", "containerStatuses": [{"state": state}]}}


@pytest.mark.parametrize(
    ("pod", "by_itself"),
    [
        (ended("2026-01-01T10:00:00Z"), True),
        (ended("2026-01-01T10:00:00Z", "2026-01-01T10:05:30Z"), True),
        (ended("2026-01-01T10:05:00Z", "2026-01-01T10:05:30Z"), False),
        (ended("2026-01-01T10:05:10Z", "2026-01-01T10:05:30Z"), False),
        (ended("2026-01-01T10:05:10Z", "2026-01-01T10:05:30Z", grace=0), True),
        (ended(None, "2026-01-01T10:05:30Z"), False),
    ],
    ids=["nobody asked", "before", "at that moment", "after", "deleted at once, later", "nobody knows when"],
)
def test_a_pod_that_was_asked_to_stop_has_not_ended_by_itself(pod: dict[str, Any], by_itself: bool) -> None:
    assert ended_by_itself(pod) is by_itself


def test_only_kueues_finalizer_is_taken_off() -> None:
    pod = {"metadata": {"uid": "1", "finalizers": ["example.com/keep", "kueue.x-k8s.io/managed"]}}
    assert released_pod(pod) == {"metadata": {"uid": "1", "finalizers": ["example.com/keep"]}}
    assert released_pod({"metadata": {"uid": "1", "finalizers": ["example.com/keep"]}}) is None
