"""Fields of Volcano's objects with another type than in its CRDs: each is refused where it is, and none raises."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusters.manifests.translation.translated import Translation
from clusters.manifests.translation.translations import translate_all

JOB: Final[dict[str, Any]] = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "train", "generateName": "t-", "namespace": "team", "labels": {"a": "b"}, "annotations": {}},
    "spec": {
        "schedulerName": "volcano", "queue": "research", "minAvailable": 2, "maxRetry": 3, "minSuccess": 1,
        "ttlSecondsAfterFinished": 60, "priorityClassName": "high", "runningEstimate": "1h",
        "networkTopology": {"mode": "hard"},
        "policies": [{"event": "PodFailed", "action": "RestartJob", "timeout": "10s"}],
        "plugins": {"svc": ["--publish-not-ready-addresses=true"], "env": [], "pytorch": ["--master=a"]},
        "volumes": [{"mountPath": "/data", "volumeClaimName": "data"}],
        "tasks": [
            {
                "name": "a", "replicas": 2, "minAvailable": 2, "maxRetry": 1, "topologyPolicy": "none",
                "partitionPolicy": {"totalPartitions": 1, "partitionSize": 2, "minPartitions": 1},
                "policies": [{"exitCode": 3, "action": "AbortJob"}],
                "template": {
                    "metadata": {"name": "x", "labels": {"a": "b"}},
                    "spec": {
                        "restartPolicy": "OnFailure", "schedulerName": "volcano", "priorityClassName": "low",
                        "volumes": [{"name": "v"}],
                        "initContainers": [{"name": "i", "env": [{"name": "A", "value": "1"}]}],
                        "containers": [
                            {
                                "name": "main", "env": [{"name": "B", "value": "1"}], "volumeMounts": [{"name": "v"}],
                                "resources": {"limits": {"nvidia.com/gpu": 1}, "requests": {"cpu": "500m"}},
                            }
                        ],
                    },
                },
            },
            {"name": "b", "replicas": 1, "dependsOn": {"name": ["a"], "iteration": "any"}, "template": {"spec": {}}},
        ],
    },
}  # fmt: skip
QUEUE: Final[dict[str, Any]] = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "Queue",
    "metadata": {"name": "research", "labels": {}, "annotations": {"a": "b"}},
    "spec": {
        "weight": 2, "priority": 3, "reclaimable": False, "parent": "root", "type": "x", "dequeueStrategy": "fifo",
        "capability": {"cpu": 8, "pods": 5}, "deserved": {"cpu": "4"}, "guarantee": {"resource": {"cpu": 2}},
        "affinity": {}, "extendClusters": [],
    },
    "status": {"state": "Closed"},
}  # fmt: skip
POD_GROUP: Final[dict[str, Any]] = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "PodGroup",
    "metadata": {"name": "pair", "namespace": "team"},
    "spec": {"minMember": 2, "queue": "research", "priorityClassName": "high", "minResources": {"cpu": 1}},
}
POD: Final[dict[str, Any]] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "p", "namespace": "team", "labels": {"a": "b"}, "annotations": {"scheduling.k8s.io/group-name": "pair"}
    },
    "spec": {"schedulerName": "volcano", "containers": []},
}  # fmt: skip
JOB_FLOW: Final[dict[str, Any]] = {
    "apiVersion": "flow.volcano.sh/v1alpha1",
    "kind": "JobFlow",
    "metadata": {"name": "nightly", "namespace": "team"},
    "spec": {
        "jobRetainPolicy": "delete",
        "flows": [
            {"name": "a", "maxRetry": 2},
            {
                "name": "b",
                "dependsOn": {"targets": ["a"], "probe": {"httpGetList": []}},
                "patch": {
                    "jobSpec": {
                        "tasks": [{"name": "w", "replicas": 2}], "plugins": {"env": []}, "queue": "research",
                        "volumes": [{"mountPath": "/data", "volumeClaimName": "data"}],
                    }
                },
            },
        ],
    },
}  # fmt: skip
JOB_TEMPLATES: Final[tuple[dict[str, Any], ...]] = tuple(
    {
        "apiVersion": "flow.volcano.sh/v1alpha1",
        "kind": "JobTemplate",
        "metadata": {"name": name, "namespace": "team"},
        "spec": {
            "tasks": [{"name": "w", "replicas": 1, "template": {"spec": {"containers": [{"name": "main"}]}}}],
            "volumes": [{"mountPath": "/data", "volumeClaimName": "other"}], "plugins": {"env": ["x"]},
        },
    }
    for name in "ab"
)  # fmt: skip
OBJECTS: Final = (JOB, QUEUE, POD_GROUP, POD, JOB_FLOW, *JOB_TEMPLATES)
Place = tuple[str | int, ...]

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.just("1e999"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


def places(content: Any, above: Place = ()) -> Iterator[Place]:
    """Every field below one, and every item of a list."""
    if above:
        yield above
    for key, item in (
        content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    ):
        yield from places(item, (*above, key))


PLACES: Final = [
    (number, place)
    for number, content in enumerate(OBJECTS)
    for place in places(content)
    if place[0] not in ("apiVersion", "kind")
]


def changed(number: int, place: Place, value: Any) -> list[dict[str, Any]]:
    """All objects, one of which has another value in one place."""
    objects = deepcopy([*OBJECTS])
    holder: Any = objects[number]
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    return objects


def refusals(found: dict[int, Translation]) -> dict[int, list[str]]:
    return {place: [refusal.path for refusal in made.refusals] for place, made in found.items() if made.refusals}


def test_the_objects_themselves_are_translated() -> None:
    found = translate_all(OBJECTS)
    assert refusals(found) == {}
    kinds = [manifest["kind"] for place in sorted(found) for manifest in found[place].manifests]
    assert kinds == ["JobSet", "ClusterQueue", "Pod", "Job", "Job"]


@given(st.sampled_from(PLACES), VALUES)
def test_a_field_with_any_other_value_never_raises(at: tuple[int, Place], value: Any) -> None:
    assert all(isinstance(made, Translation) for made in translate_all(changed(*at, value)).values())


@pytest.mark.parametrize(
    ("number", "place", "value", "path"),
    [
        (0, ("spec",), None, "spec"),
        (0, ("spec", "tasks"), {"a": 1}, "spec.tasks"),
        (0, ("spec", "tasks", 0), "a", "spec.tasks[0]"),
        (0, ("spec", "tasks", 0, "replicas"), "2", "spec.tasks[0].replicas"),
        (0, ("spec", "tasks", 0, "template", "spec", "containers", 0, "env", 0, "name"), [],
         "spec.tasks[0].template.spec.containers[0].env[0].name"),
        (0, ("spec", "tasks", 0, "template", "spec", "containers", 0, "resources"), "one",
         "spec.tasks[0].template.spec.containers[0].resources"),
        (0, ("spec", "volumes", 0, "mountPath"), None, "spec.volumes[0].mountPath"),
        (0, ("metadata",), None, "metadata"),
        (1, ("metadata", "name"), None, "metadata.name"),
        (1, ("spec", "weight"), "2", "spec.weight"),
        (1, ("spec", "capability", "cpu"), True, "spec.capability[cpu]"),
        (2, ("spec", "minMember"), "two", "spec.minMember"),
        (4, ("spec",), None, "spec"),
        (4, ("spec", "flows", 1, "name"), 2, "spec.flows[1].name"),
        (4, ("spec", "flows", 1, "dependsOn", "targets"), "a", "spec.flows[1].dependsOn.targets"),
        (4, ("spec", "flows", 1, "patch", "jobSpec", "tasks"), {}, "spec.flows[1].patch.jobSpec.tasks"),
        (5, ("spec", "tasks", 0, "replicas"), "1", "spec.tasks[0].replicas"),
    ],
)  # fmt: skip
def test_a_field_of_another_type_is_refused_where_it_is(number: int, place: Place, value: Any, path: str) -> None:
    assert refusals(translate_all(changed(number, place, value))) == {number: [path]}


def test_a_pod_that_cannot_be_read_joins_no_group() -> None:
    assert 3 not in translate_all(changed(3, ("metadata", "labels"), ["a"]))
