"""Which workloads count as equal when one of them finds no room."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scheduling.world_helpers import Builder, cycle

PREFERRED = {"weight": 1, "preference": {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}}
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}


def container(**fields: Any) -> dict[str, Any]:
    """A spec with one container of two cores."""
    return {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}} | fields]}


def inadmissible_with(requests: Any, **fields: Any) -> bool:
    """Whether a workload becomes inadmissible with the head, which asks for two cores (and a GPU) of a full queue."""
    head = {"cpu": 2} if not isinstance(requests, dict) else requests
    builder = Builder().queue("q", {"default": dict.fromkeys(head, 2)})
    builder.running("used", "q", dict.fromkeys(head, 2))
    builder.pending("head", "q", head).pending("other", "q", requests, at=1.0, **fields)
    assert cycle(builder.world).heads == 1
    return builder.world.cluster_queue_status("q").inadmissible == 2


@pytest.mark.parametrize(
    "fields",
    [
        {"annotations": {"run": "17"}},
        {"spec": container(image="other", name="d", command=["sleep"])},
        {"spec": container(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "4"}})},
        {"spec": container(resources={"limits": {"cpu": "2"}})},
        {"spec": container(resources={"requests": {"cpu": "2000m"}})},
        {"spec": {"schedulerName": "mine", "terminationGracePeriodSeconds": 3}},
    ],
)
def test_what_kueue_does_not_compare(fields: dict[str, Any]) -> None:
    assert inadmissible_with(2, **fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"priority": -1},
        {"count": 2},
        {"min_count": 1, "count": 2},
        {"spec": container(ports=[{"containerPort": 80}])},
        {"spec": {"runtimeClassName": "kata"}},
        {"spec": {"priority": 5}},
        {"spec": {"nodeSelector": {"zone": "a"}}},
        {"spec": {"topologySpreadConstraints": [SPREAD]}},
        {"spec": {"resourceClaims": [{"name": "device"}]}},
        {"spec": {"tolerations": [{"key": "spot", "operator": "Exists"}]}},
        {"spec": {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [PREFERRED]}}}},
        {"spec": {"initContainers": [{"name": "i", "resources": {"requests": {"cpu": "1"}}}]}},
    ],
)
def test_what_it_compares(fields: dict[str, Any]) -> None:
    assert not inadmissible_with(2, **fields)


def test_annotations_tell_pods_with_devices_apart() -> None:
    requests = {"cpu": 2, "nvidia.com/gpu": 2}
    assert inadmissible_with(requests)
    assert not inadmissible_with(requests, annotations={"nvidia.com/use-gputype": "A100"})
