"""Transformations and the request of a pod."""

from __future__ import annotations

from typing import Any

from scheduling.model.pod import PodTemplate
from scheduling.model.quantity import NANOS
from scheduling.model.resources import Transformation, pod_requests, transform
from scheduling.model.vocabulary import TransformationStrategy

GPU, MEMORY, TOTAL = "nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/total-gpumem"
REPLACE = TransformationStrategy.REPLACE


def template(**spec: Any) -> PodTemplate:
    """A pod template of a manifest's spec."""
    return PodTemplate.from_manifest({"spec": spec})


def container(name: str = "c", limits: dict[str, str] | None = None, **requests: str) -> dict[str, Any]:
    """A container's manifest."""
    resources: dict[str, Any] = {"requests": requests}
    if limits:
        resources["limits"] = limits
    return {"name": name, "resources": resources}


def test_hami_totals_by_multiplication() -> None:
    rule = Transformation(MEMORY, REPLACE, multiply_by=GPU, outputs={TOTAL: NANOS})
    assert transform({GPU: 4 * NANOS, MEMORY: 512 * NANOS}, [rule]) == {GPU: 4 * NANOS, TOTAL: 2048 * NANOS}


def test_without_the_multiplier_in_the_request_the_factor_alone_counts() -> None:
    rule = Transformation(MEMORY, REPLACE, multiply_by=GPU, outputs={TOTAL: 2 * NANOS})
    assert transform({MEMORY: 512 * NANOS}, [rule]) == {TOTAL: 1024 * NANOS}


def test_outputs_of_several_rules_add_up_and_retained_inputs_stay() -> None:
    rules = [
        Transformation("a", TransformationStrategy.RETAIN, outputs={"credits": 5 * NANOS}),
        Transformation("b", REPLACE, outputs={"credits": NANOS // 2}),
    ]
    assert transform({"a": 2 * NANOS, "b": 4 * NANOS}, rules) == {"a": 2 * NANOS, "credits": 12 * NANOS}


def test_a_total_below_zero_is_zero() -> None:
    rule = Transformation("a", REPLACE, outputs={"credits": -NANOS})
    assert transform({"a": NANOS}, [rule]) == {"credits": 0}


def test_a_missing_request_is_the_limit() -> None:
    assert pod_requests(template(containers=[container(limits={"cpu": "2"})])) == {"cpu": 2000}
    assert pod_requests(template(containers=[container(limits={"cpu": "2"}, cpu="1")])) == {"cpu": 1000}


def test_init_containers_and_sidecars() -> None:
    spec = template(
        containers=[container(cpu="1"), container("d", cpu="2")],
        initContainers=[
            container("first", cpu="5"),
            {**container("sidecar", cpu="1"), "restartPolicy": "Always"},
            container("second", cpu="4"),
        ],
    )
    # Running: 1 + 2 + sidecar 1; starting: 5 alone, then 4 beside the sidecar.
    assert pod_requests(spec) == {"cpu": 5000}
    assert pod_requests(template(containers=[container(cpu="3")], initContainers=[container("i", cpu="1")])) == {
        "cpu": 3000
    }


def test_overhead_and_pod_level_resources() -> None:
    spec = template(
        containers=[container(cpu="1", memory="1Gi")],
        overhead={"cpu": "250m"},
        resources={"requests": {"cpu": "4", "example.com/x": "1"}},
    )
    assert pod_requests(spec) == {"cpu": 4250, "memory": 2**30}


def test_excluded_prefixes_are_left_out_before_transformations() -> None:
    rule = Transformation("example.com/x", REPLACE, outputs={"credits": NANOS})
    spec = template(containers=[{"name": "c", "resources": {"requests": {"cpu": "1", "example.com/x": "1"}}}])
    assert pod_requests(spec, [rule], ["example.com/"]) == {"cpu": 1000}


def test_the_first_request_above_its_limit_is_named() -> None:
    assert template(containers=[container(limits={"cpu": "1"}, cpu="2")]).exceeded_limit() == "container c: cpu"
    assert template(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}).exceeded_limit() == "pod: cpu"
    assert template(containers=[container(limits={"cpu": "2"}, cpu="2")]).exceeded_limit() is None
