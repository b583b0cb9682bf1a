"""From limits and annotations to device requests: X40, X41 and X44 of the worked examples, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from scheduling.devices.requests.requests import parse_scoring_weights, pod_device_request
from scheduling.model.device import PERCENTAGE_UNSET, DeviceRequest
from scheduling.model.placement import DeviceConstraints, PodDeviceRequest, ScoringWeights
from scheduling.model.quantity import NANOS
from scheduling.model.resources import Transformation, transform
from scheduling.model.vendor import NVIDIA
from scheduling.model.vocabulary import TransformationStrategy


def requested(*limits: dict[str, Any], annotations: dict[str, str] | None = None, **spec: Any) -> PodDeviceRequest:
    """The request of a pod with one container per dict of limits; `nvidia.com/` is left out of the names."""
    containers = [
        {
            "name": f"c{number}",
            "resources": {"limits": {f"nvidia.com/{name.replace('_', '-')}": amount for name, amount in each.items()}},
        }
        for number, each in enumerate(limits)
    ]
    template = {"metadata": {"annotations": annotations or {}}, "spec": {"containers": containers, **spec}}
    return pod_device_request(template, [NVIDIA])


WEBHOOK = [
    ({"gpu": 1}, (1, 0, 100, 100)),
    ({"gpu": 2}, (2, 0, 100, 100)),
    ({"gpu": 1, "gpumem": 3000}, (1, 3000, PERCENTAGE_UNSET, 0)),
    ({"gpu": 1, "gpucores": 30}, (1, 0, 100, 30)),
    ({"gpumem": 3000}, (1, 3000, PERCENTAGE_UNSET, 0)),
    ({"gpucores": 30}, (1, 0, 100, 30)),
    ({"gpumem_percentage": 50}, (1, 0, 50, 0)),
    ({"gpu": 1, "gpumem_percentage": 100}, (1, 0, 100, 100)),
    ({"gpu": 1, "gpumem": 0}, (1, 0, 100, 0)),
    ({"gpu": 1, "gpumem": 3000, "gpumem_percentage": 50}, (1, 3000, 50, 0)),
    ({"gpu": "1", "gpumem": "5k"}, (1, 5000, PERCENTAGE_UNSET, 0)),
    ({"gpu": 1, "gpumem": "1Mi"}, (1, 1_048_576, PERCENTAGE_UNSET, 0)),
]


@pytest.mark.parametrize(("limits", "expected"), WEBHOOK)
def test_x40_x44_limits_become_a_request(limits: dict[str, Any], expected: tuple[int, int, int, int]) -> None:
    count, memory, percentage, cores = expected
    asked = requested(limits)
    assert asked.containers == ((DeviceRequest("NVIDIA", count, memory, percentage, cores),),)
    assert not asked.problems


@pytest.mark.parametrize(
    ("limits", "resource", "refused"),
    [
        ({"gpu": 1, "gpumem": "4000Mi"}, "nvidia.com/gpumem", False),
        ({"gpu": "500m"}, "nvidia.com/gpu", False),
        ({"gpu": "many"}, "nvidia.com/gpu", False),
        ({"gpu": 1, "gpumem_percentage": 120}, "nvidia.com/gpumem-percentage", True),
        ({"gpu": 1, "gpumem_percentage": -1}, "nvidia.com/gpumem-percentage", True),
        ({"gpu": 1, "gpumem": 100, "gpucores": -5}, "nvidia.com/gpucores", True),
    ],
)
def test_x44_what_hami_drops_or_refuses_is_a_problem(limits: dict[str, Any], resource: str, refused: bool) -> None:
    asked = requested(limits)
    assert asked.containers == ((),)
    (problem,) = asked.problems
    assert (problem.container, problem.resource, problem.refused) == ("c0", resource, refused)


def test_x41_the_transformed_quota_of_hami_s_recipe() -> None:
    rules = [
        Transformation(
            f"nvidia.com/{name}", TransformationStrategy.REPLACE, "nvidia.com/gpu", {f"nvidia.com/total-{name}": NANOS}
        )
        for name in ("gpucores", "gpumem")
    ]

    def totals(gpus: int, cores: int, memory: int) -> dict[str, int]:
        pod = {"nvidia.com/gpu": gpus, "nvidia.com/gpucores": cores, "nvidia.com/gpumem": memory}
        charged = transform({name: amount * NANOS for name, amount in pod.items()}, rules)
        return {name.removeprefix("nvidia.com/"): amount // NANOS for name, amount in charged.items()}

    assert totals(1, 50, 1024) == {"gpu": 1, "total-gpucores": 50, "total-gpumem": 1024}
    assert totals(2, 30, 1024) == {"gpu": 2, "total-gpucores": 60, "total-gpumem": 2048}
    assert totals(2, 0, 6000)["total-gpumem"] == 12_000  # one pod of (1, 2000) and (1, 4000) is charged twice its use


def test_requests_stand_in_for_missing_limits() -> None:
    container = {"name": "c", "resources": {"requests": {"nvidia.com/gpu": "2", "nvidia.com/gpumem": "1000"}}}
    asked = pod_device_request({"spec": {"containers": [container]}}, [NVIDIA])
    assert asked.containers == ((DeviceRequest("NVIDIA", 2, 1000),),)


def test_containers_without_devices_keep_their_place() -> None:
    init = [{"name": "fetch"}, {"name": "warm", "resources": {"limits": {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 9}}}]
    asked = requested({}, {"gpu": 1, "gpumem": 10}, initContainers=init)
    assert asked.init_containers == ((), (DeviceRequest("NVIDIA", 1, 9),))
    assert asked.containers == ((), (DeviceRequest("NVIDIA", 1, 10),))
    assert asked.asks_for_devices


def test_a_pod_without_devices_asks_for_none() -> None:
    asked = pod_device_request({"spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": 1}}}]}}, [NVIDIA])
    assert not asked.asks_for_devices
    assert not pod_device_request({}, [NVIDIA]).asks_for_devices


def test_annotations_become_policies_and_constraints() -> None:
    asked = requested(
        {"gpu": 1},
        annotations={
            "hami.io/node-scheduler-policy": "spread",
            "hami.io/gpu-scheduler-policy": "binpack,numa",
            "hami.io/device-scoring-weights": "slot=1, core=0, memory=3",
            "nvidia.com/use-gputype": " A100 ,, H100",
            "nvidia.com/nouse-gpuuuid": "GPU-1",
            "nvidia.com/numa-bind": "true",
            "nvidia.com/vgpu-mode": "mig",
        },
    )
    assert (asked.node_policy, asked.device_policy) == ("spread", "binpack,numa")
    assert asked.weights == ScoringWeights(1, 0, 3)
    assert asked.constraints_of("NVIDIA") == DeviceConstraints(
        use_types=("A100", "H100"), nouse_uuids=("GPU-1",), numa_bind=True, mode="mig"
    )


@pytest.mark.parametrize(
    "text",
    ["slot=1", "slot=1,core=1,memory=-1", "slot=0,core=0,memory=0", "slot=1,slot=1,memory=1", "a=1,core=1,slot=1"],
)
def test_invalid_weights_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_scoring_weights(text)
    (problem,) = requested({"gpu": 1}, annotations={"hami.io/device-scoring-weights": text}).problems
    assert problem.refused


@pytest.mark.parametrize(
    ("spec", "resource"),
    [
        ({"nodeName": "n1"}, "spec.nodeName"),
        ({"initContainers": [{"name": "i", "securityContext": {"privileged": True}}]}, "securityContext.privileged"),
    ],
)
def test_what_the_webhook_denies_pods_with_devices(spec: dict[str, Any], resource: str) -> None:
    (problem,) = requested({"gpu": 1}, **spec).problems
    assert (problem.resource, problem.refused) == (resource, True)
    assert not requested({}, **spec).problems


def test_a_problem_names_the_container_the_resource_the_value_and_the_rule() -> None:
    (problem,) = requested({"gpu": 1, "gpumem": "4000Mi"}).problems
    assert str(problem) == (
        "Container c0: nvidia.com/gpumem is 4000Mi: memory must be a plain number of MiB, without a suffix such as Mi."
    )


@pytest.mark.parametrize(
    ("annotation", "text"),
    [("hami.io/node-scheduler-policy", "pack"), ("hami.io/gpu-scheduler-policy", "binpack,nume")],
)
def test_a_misspelt_policy_is_reported(annotation: str, text: str) -> None:
    (problem,) = requested({"gpu": 1}, annotations={annotation: text}).problems
    assert (problem.resource, problem.value, problem.refused) == (annotation, text, False)
    assert not requested({"gpu": 1}, annotations={annotation: "binpack"}).problems


@pytest.mark.parametrize("limits", [{"gpu": 2**31}, {"gpu": "1e30"}])
def test_no_node_has_that_many_devices(limits: dict[str, Any]) -> None:
    asked = requested(limits)
    assert asked.containers == ((),)
    assert [problem.refused for problem in asked.problems] == [True]
