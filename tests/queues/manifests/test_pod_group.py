"""Which pods of a group are alike."""

from __future__ import annotations

from typing import Any

import pytest

from queues.manifests.pod_group import role_hash, states_group

GPU = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "4000"}


def template(annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "train", "resources": {"limits": GPU}, **spec.pop("container", {})}
    return {"metadata": {"annotations": annotations or {}}, "spec": {"containers": [container], **spec}}


def test_it_is_eight_hexadecimal_digits_and_stays() -> None:
    assert role_hash(template()) == role_hash(template())
    assert len(role_hash(template())) == 8
    assert int(role_hash(template()), 16) >= 0


@pytest.mark.parametrize(
    "same",
    [
        template(container={"image": "other", "command": ["sleep"], "env": [{"name": "RANK", "value": "1"}]}),
        template({"kueue.x-k8s.io/pod-group-pod-index": "3", "example.com/note": "first"}),
        template(container={"resources": {"requests": GPU, "limits": GPU}}),
        template(serviceAccountName="robot", hostname="pod-1", tolerations=[]),
    ],
    ids=[
        "what it runs",
        "annotations that decide nothing",
        "requests as the server fills them in",
        "what decides nothing",
    ],
)
def test_pods_that_need_the_same_are_alike(same: dict[str, Any]) -> None:
    assert role_hash(same) == role_hash(template())


@pytest.mark.parametrize(
    "other",
    [
        template(container={"resources": {"limits": {**GPU, "nvidia.com/gpumem": "8000"}}}),
        template(container={"resources": {"limits": GPU, "requests": {"cpu": "1"}}}),
        template(container={"ports": [{"hostPort": 80}]}),
        template({"nvidia.com/use-gputype": "A100"}),
        template({"hami.io/node-scheduler-policy": "spread"}),
        template({"kueue.x-k8s.io/podset-required-topology": "rack"}),
        template(nodeSelector={"zone": "a"}),
        template(tolerations=[{"key": "spot", "operator": "Exists"}]),
        template(affinity={"nodeAffinity": {}}),
        template(priorityClassName="high"),
        template(runtimeClassName="gvisor"),
        template(overhead={"cpu": "1"}),
        template(initContainers=[{"name": "fetch", "resources": {"requests": {"cpu": "2"}}}]),
    ],
)
def test_pods_that_need_something_else_are_not(other: dict[str, Any]) -> None:
    assert role_hash(other) != role_hash(template())


@pytest.mark.parametrize(
    ("document", "states"),
    [
        ({"kind": "Pod", "metadata": {"labels": {"kueue.x-k8s.io/pod-group-name": "a"}}}, True),
        ({"kind": "Pod", "metadata": {"annotations": {"kueue.x-k8s.io/pod-group-name": "a"}}}, True),
        ({"kind": "Job", "metadata": {"labels": {"kueue.x-k8s.io/pod-group-name": "a"}}}, False),
        ({"kind": "Pod", "metadata": {"labels": ["a"]}}, False),
        ({"kind": "Pod"}, False),
    ],
)
def test_a_document_that_names_a_group(document: dict[str, Any], states: bool) -> None:
    assert states_group(document) is states
