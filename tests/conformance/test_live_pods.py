"""The recorded scenarios of pods on the road of live ones: alone, in groups, and those of the kinds that serve.

Every pod and workload is as recorded after every step, but in the scenarios of `DIFFERENT`. The binder, which gives
pods the domains of their topology, has no part in the recordings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pytest

from clusters.jobs.framework.manifest import JsonObject, name_of
from clusters.jobs.scenario import JobScenario
from tests.conformance.job_results import plain
from tests.conformance.live_pods import LivePods
from tests.conformance.test_live_jobs import comparable, differences, recorded, without_ours

pytestmark = pytest.mark.django_db(transaction=True)  # the push reads in transactions of its own

KINDS: Final = ("deployment", "leaderworkerset", "pod", "podgroup", "statefulset")

_NEXT_GROUP: Final = "once the group has ended, another pod begins another group"

_NOT_ITS_PODS: Final = "pods of which no StatefulSet is known stay at their gates: anyone can write their labels"

_NEW_SIZE: Final = "a workload without quota follows the number of replicas, which no webhook lets a user change"

DIFFERENT: Final[Mapping[str, str]] = {
    "leaderworkerset-seen-000": _NOT_ITS_PODS,
    "leaderworkerset-seen-019": _NOT_ITS_PODS,
    "podgroup-seen-086": _NEXT_GROUP,
    "statefulset-seen-006": _NEW_SIZE,
    "statefulset-seen-010": _NEW_SIZE,
    "statefulset-seen-039": _NEW_SIZE,
}
"""The scenarios that fare otherwise than recorded, with why. One that agrees must leave."""


@pytest.mark.parametrize("kind", KINDS)
def test_live_pods_fare_as_recorded(kind: str) -> None:
    found = {case["id"]: difference for case in recorded(kind) if (difference := difference_of(case))}
    known = {name for name in DIFFERENT if name.startswith(f"{kind}-")}
    assert not {name: difference for name, difference in found.items() if name not in known}
    assert known <= set(found), "these agree: take them out of the list"


@pytest.mark.parametrize("name", [name for name, why in DIFFERENT.items() if why is _NEW_SIZE])
def test_the_webhook_refuses_a_new_size_of_a_waiting_set(name: str) -> None:
    """So no cluster comes to where these scenarios go: they were recorded without webhooks."""
    recording = next(case["input"] for case in recorded(name.partition("-")[0]) if case["id"] == name)
    resize = next(step["patch"] for step in recording["steps"] if step["op"] == "patch")
    result = JobScenario({**recording, "updates": [{"name": "resize", "old": {}, "new": resize}], "steps": []}).run()
    assert [error["field"] for error in result["updates"][0]["errors"]] == ["spec.replicas"]


def difference_of(case: JsonObject) -> str:
    """Where the scenario first fares otherwise; empty if nowhere."""
    collects = case["kind"] == "Deployment"
    for step, expected in zip(LivePods(case["input"]).live(), case["expected"]["steps"], strict=True):
        for path, ours, theirs in differences(_comparable(step, collects), _comparable(expected, collects)):
            return f"{expected['op']}{path}: {ours!r} instead of {theirs!r}"
    return ""


def _comparable(step: JsonObject, collects: bool) -> JsonObject:
    """The step; where a garbage collector would remove workloads with their pods, without these: ours end.

    The templates of ours have labels and annotations too, since annotations choose devices, and a row that stands for a
    group of pods owns its workload.
    """
    there = {name_of(pod) for pod in step.get("pods") or ()}
    left = [each for each in step["workloads"] if not collects or _pod_of(each) in there]
    found = comparable({**step, "workloads": left})
    for workload in found["workloads"].values():
        workload.get("metadata", {}).pop("ownerReferences", None)
        for pod_set in workload.get("spec", {}).get("podSets") or ():
            pod_set["template"].pop("metadata", None)
    pods = {name_of(pod): plain(pod) for pod in without_ours(step).get("pods") or ()}
    return {**found, "pods": pods}


def _pod_of(workload: JsonObject) -> str:
    return next(
        (each["name"] for each in workload["metadata"].get("ownerReferences") or () if each["kind"] == "Pod"), ""
    )
