"""LimitRanges and RuntimeClasses: what pods ask for once the cluster completed them, and what it would refuse."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from scheduling.model.configuration import Configuration
from scheduling.model.limit_range import LimitRange, LimitRangeItem, with_api_defaults
from scheduling.model.placement import Placement
from scheduling.model.pod import PodTemplate
from scheduling.model.pod_defaults import PodDefaults, RuntimeClass
from scheduling.model.quantity import NANOS
from scheduling.model.workload import PodSet, Workload
from tests.scheduling.device_worlds import PLENTY, gpu_node, gpus
from tests.scheduling.world_helpers import (
    Builder,
    admissions,
    cycle,
    messages,
    outcomes,
    pod_set,
    settled,
)


def limit_range(*items: dict[str, Any], name: str = "sizes", namespace: str = "team") -> LimitRange:
    return LimitRange(namespace, name, tuple(LimitRangeItem.from_manifest({"type": "Container", **i}) for i in items))


def pods(*containers: dict[str, Any], **spec: Any) -> PodSet:
    """Pods whose containers have these resources."""
    listed = [{"name": f"c{number}", "resources": resources} for number, resources in enumerate(containers)]
    return PodSet(template=PodTemplate.from_manifest({"spec": {"containers": listed, **spec}}))


def requests(defaults: PodDefaults, stated: PodSet) -> dict[str, float]:
    effective = defaults.completed("team", stated).template.effective_requests()
    return {name: value / NANOS for name, value in effective.items()}


def with_ranges(*ranges: LimitRange) -> PodDefaults:
    defaults = PodDefaults()
    for each in ranges:
        defaults.set_limit_range(each)
    return defaults


class TestApiDefaults:
    def test_a_maximum_is_the_default_limit_and_that_the_default_request(self) -> None:
        filled = with_api_defaults({"type": "Container", "max": {"cpu": "4"}, "min": {"cpu": "1", "memory": "1Gi"}})
        assert filled["default"] == {"cpu": "4"}
        assert filled["defaultRequest"] == {"cpu": "4", "memory": "1Gi"}

    def test_what_is_stated_stays(self) -> None:
        stated = {"type": "Container", "max": {"cpu": "4"}, "default": {"cpu": "2"}, "defaultRequest": {"cpu": "1"}}
        assert with_api_defaults(stated) == stated

    def test_bounds_of_pods_have_no_defaults(self) -> None:
        stated = {"type": "Pod", "max": {"cpu": "4"}}
        assert with_api_defaults(stated) == stated


class TestDefaults:
    def test_a_container_that_asks_for_nothing_gets_the_defaults(self) -> None:
        defaults = with_ranges(limit_range({"default": {"cpu": "2"}, "defaultRequest": {"cpu": "500m"}}))
        completed = defaults.completed("team", pods({}))
        (container,) = completed.template.containers
        assert (container.requests, container.limits) == ({"cpu": NANOS // 2}, {"cpu": 2 * NANOS})

    def test_only_what_is_missing_is_added(self) -> None:
        defaults = with_ranges(limit_range({"defaultRequest": {"cpu": "500m", "memory": "64"}}))
        assert requests(defaults, pods({"requests": {"cpu": "3"}}, {})) == {"cpu": 3.5, "memory": 128}

    def test_the_default_request_comes_before_the_container_s_own_limit(self) -> None:
        defaults = with_ranges(limit_range({"defaultRequest": {"cpu": "500m"}}))
        assert requests(defaults, pods({"limits": {"cpu": "2"}})) == {"cpu": 0.5}

    def test_init_containers_get_them_too(self) -> None:
        defaults = with_ranges(limit_range({"defaultRequest": {"cpu": "2"}}))
        assert requests(defaults, pods({"requests": {"cpu": "1"}}, initContainers=[{"name": "i"}])) == {"cpu": 2}

    def test_of_several_the_first_by_name_counts(self) -> None:
        defaults = with_ranges(
            limit_range({"defaultRequest": {"cpu": "2"}}, name="b"),
            limit_range({"defaultRequest": {"cpu": "1"}}, name="a"),
        )
        assert requests(defaults, pods({})) == {"cpu": 1}
        defaults.delete_limit_range("team", "a")
        assert requests(defaults, pods({})) == {"cpu": 2}
        defaults.delete_limit_range("team", "b")
        stated = pods({})
        assert defaults.completed("team", stated) is stated

    def test_another_namespace_is_left_alone(self) -> None:
        defaults = with_ranges(limit_range({"defaultRequest": {"cpu": "2"}}, namespace="others"))
        assert requests(defaults, pods({})) == {}

    def test_a_complete_pod_stays_the_same_object(self) -> None:
        stated = pods({"limits": {"cpu": "1"}, "requests": {"cpu": "1"}})
        assert with_ranges(limit_range({"default": {"cpu": "2"}})).completed("team", stated) is stated

    def test_the_device_request_is_completed_as_well(self) -> None:
        defaults = with_ranges(limit_range({"default": {"nvidia.com/gpumem": "3000"}}))
        (container,) = defaults.completed("team", pods({"limits": {"nvidia.com/gpu": 1}})).template.manifest["spec"][
            "containers"
        ]
        assert container["resources"]["limits"] == {"nvidia.com/gpumem": "3000", "nvidia.com/gpu": 1}


class TestOverhead:
    def test_a_runtime_class_s_overhead_comes_on_top(self) -> None:
        defaults = PodDefaults()
        defaults.set_runtime_class(RuntimeClass("kata", {"cpu": "250m"}))
        stated = pods({"requests": {"cpu": "1"}}, runtimeClassName="kata")
        assert requests(defaults, stated) == {"cpu": 1.25}
        assert requests(defaults, pods({"requests": {"cpu": "1"}}, runtimeClassName="other")) == {"cpu": 1}

    def test_an_overhead_of_the_pod_s_own_stays(self) -> None:
        defaults = PodDefaults()
        defaults.set_runtime_class(RuntimeClass("kata", {"cpu": "250m"}))
        own = pods({"requests": {"cpu": "1"}}, runtimeClassName="kata", overhead={"cpu": "1"})
        assert requests(defaults, own) == {"cpu": 2}


OUT_OF_BOUNDS = [
    ({"max": {"cpu": "2"}}, pods({"requests": {"cpu": "1"}, "limits": {"cpu": "3"}}), "more cpu than the maximum 2"),
    ({"min": {"cpu": "2"}}, pods({"requests": {"cpu": "1"}, "limits": {"cpu": "3"}}), "less cpu than the minimum 2"),
    ({"type": "Pod", "max": {"cpu": "2"}}, pods(*[{"requests": {"cpu": "1"}}] * 3), "the pod requests more cpu"),
    ({"type": "Pod", "min": {"cpu": "4"}}, pods(*[{"requests": {"cpu": "1"}}] * 3), "the pod requests less cpu"),
    (
        {"maxLimitRequestRatio": {"cpu": "2"}},
        pods({"requests": {"cpu": "1"}, "limits": {"cpu": "2500m"}}),
        "a limit of cpu that is too far above its request: LimitRange team/sizes allows a limit of at most 2 times",
    ),
    (
        {"maxLimitRequestRatio": {"cpu": "2"}},
        pods({"requests": {"cpu": "1"}}),
        "needs both a request and a limit of cpu",
    ),
    (
        {"type": "Pod", "maxLimitRequestRatio": {"cpu": "2"}},
        pods({"requests": {"cpu": "1"}, "limits": {"cpu": "3"}}),
        "the pod has a limit of cpu that is too far above",
    ),
]


@pytest.mark.parametrize(("item", "stated", "said"), OUT_OF_BOUNDS)
def test_out_of_bounds(item: dict[str, Any], stated: PodSet, said: str) -> None:
    assert said in with_ranges(limit_range(item)).violation("team", [stated])


@pytest.mark.parametrize(
    ("item", "stated"),
    [
        ({"max": {"cpu": "2"}}, pods({"requests": {"cpu": "1"}, "limits": {"cpu": "2"}})),
        ({"min": {"cpu": "1"}}, pods({"requests": {"cpu": "1"}, "limits": {"cpu": "2"}})),
        ({"max": {"memory": "1"}}, pods({"requests": {"cpu": "1"}})),
        ({"type": "Pod", "max": {"cpu": "3"}, "min": {"cpu": "3"}}, pods(*[{"requests": {"cpu": "1"}}] * 3)),
        ({"maxLimitRequestRatio": {"cpu": "2"}}, pods({"requests": {"cpu": "1"}, "limits": {"cpu": "2"}})),
        ({"type": "PersistentVolumeClaim", "max": {"cpu": "1"}}, pods({"requests": {"cpu": "2"}})),
    ],
)
def test_within_bounds(item: dict[str, Any], stated: PodSet) -> None:
    assert with_ranges(limit_range(item)).violation("team", [stated]) == ""


def test_the_strictest_of_several_counts() -> None:
    defaults = with_ranges(limit_range({"max": {"cpu": "8"}}, name="a"), limit_range({"max": {"cpu": "2"}}, name="b"))
    found = defaults.violation("team", [pods({"requests": {"cpu": "4"}})])
    assert found == "pod set main: container c0 requests more cpu than the maximum 2 of LimitRange team/b"


class TestInTheWorld:
    def builder(self) -> Builder:
        return Builder().queue("q", {"default": 10})

    def test_defaults_are_what_quota_is_charged(self) -> None:
        builder = self.builder()
        builder.world.set_limit_range(limit_range({"defaultRequest": {"cpu": "4"}}))
        for number in range(3):
            builder.pending(f"w{number}", "q", {}, at=float(number))
        admitted = [name for result in settled(builder.world) for name in admissions(result)]
        assert admitted == ["w0", "w1"]
        (usage,) = builder.world.cluster_queue_status("q").usage
        assert usage.used == 8000

    def test_out_of_bounds_is_misconfigured_in_kueue_s_words(self) -> None:
        builder = self.builder()
        builder.world.set_limit_range(limit_range({"max": {"cpu": "2"}}))
        result = cycle(builder.pending("w", "q", 3).world)
        assert outcomes(result) == {"w": "Misconfigured"}
        assert messages(result)["w"] == (
            "didn't satisfy LimitRange constraints: pod set main: container c requests more cpu than the maximum 2 of "
            "LimitRange team/sizes"
        )

    def test_an_edit_admits_pending_workloads(self) -> None:
        builder = self.builder()
        builder.world.set_limit_range(limit_range({"max": {"cpu": "2"}}))
        assert admissions(cycle(builder.pending("w", "q", 3).world)) == []
        builder.world.set_limit_range(limit_range({"max": {"cpu": "3"}}))
        assert admissions(cycle(builder.world)) == ["w"]

    def test_its_deletion_admits_pending_workloads(self) -> None:
        builder = self.builder()
        builder.world.set_limit_range(limit_range({"defaultRequest": {"cpu": "11"}}))
        assert admissions(cycle(builder.pending("w", "q", {}).world)) == []
        builder.world.delete_limit_range("team/sizes")
        assert admissions(cycle(builder.world)) == ["w"]

    def test_the_admitted_keep_what_they_hold(self) -> None:
        builder = self.builder()
        builder.world.set_limit_range(limit_range({"defaultRequest": {"cpu": "4"}}))
        assert admissions(cycle(builder.pending("w", "q", {}).world)) == ["w"]
        builder.world.set_limit_range(limit_range({"defaultRequest": {"cpu": "1"}, "max": {"cpu": "1"}}))
        settled(builder.world)
        (usage,) = builder.world.cluster_queue_status("q").usage
        assert usage.used == 4000

    def test_a_change_in_another_namespace_wakes_no_workload(self) -> None:
        builder = self.builder()
        builder.world.set_limit_range(limit_range({"defaultRequest": {"cpu": "11"}}))
        settled(builder.pending("w", "q", {}).world)
        builder.world.set_limit_range(limit_range({"defaultRequest": {"cpu": "4"}}, namespace="others"))
        assert not builder.world.has_active()
        builder.world.set_limit_range(limit_range({"defaultRequest": {"cpu": "12"}}))
        assert builder.world.has_active()

    def test_a_runtime_class_counts_for_those_that_name_it(self) -> None:
        builder = self.builder()
        builder.pending("kata", "q", 10, spec={"runtimeClassName": "kata"}).pending("plain", "q", 11)
        builder.world.set_runtime_class(RuntimeClass("kata", {"cpu": "1"}))
        settled(builder.world)
        assert not builder.world.has_active()
        builder.world.delete_runtime_class("kata")
        assert [name for result in settled(builder.world) for name in admissions(result)] == ["kata"]

    def test_a_new_configuration_keeps_them(self) -> None:
        builder = self.builder()
        builder.world.set_limit_range(limit_range({"defaultRequest": {"cpu": "11"}}))
        builder.pending("w", "q", {})
        builder.world.set_configuration(Configuration(exclude_resource_prefixes=("x",)))
        assert admissions(cycle(builder.world)) == []

    def test_devices_by_default_are_placed(self) -> None:
        builder = Builder().queue("q", {"default": PLENTY})
        builder.world.set_node(gpu_node("n1"))
        builder.world.set_limit_range(limit_range({"default": {"nvidia.com/gpumem": "4096"}}))
        stated = pod_set({}, spec={"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": 1}}}]})
        builder.pending("w", "q", [stated])
        (admission,) = cycle(builder.world).admissions
        assert admission.placement is not None
        assert admission.placement.pods[0].slices[0].memory_mib == 4096

    def test_after_a_reload_the_pods_fill_their_node_as_they_do(self) -> None:
        builder = Builder().queue("q", {"default": {**PLENTY, "cpu": 1000}})
        builder.world.set_node(gpu_node("n1"))
        builder.world.set_limit_range(limit_range({"defaultRequest": {"cpu": "40"}}))
        (admission,) = cycle(builder.pending("w", "q", [gpus(memory_mib=10)]).world).admissions
        assert admission.placement is not None
        again = Builder().queue("q", {"default": {**PLENTY, "cpu": 1000}})
        again.world.set_node(gpu_node("n1"))
        again.world.set_limit_range(limit_range({"defaultRequest": {"cpu": "40"}}))
        stored = builder.world.workload("team/w")
        assert stored is not None
        again.world.set_workload(as_stored(stored), 1000.0)
        result = cycle(again.pending("next", "q", [gpus(memory_mib=10)]).world)
        assert "Insufficient cpu" in messages(result)["next"]


def as_stored(workload: Workload) -> Workload:
    """As the rows give it back: they know what the template says its pods ask for, and no more."""
    assert workload.placement is not None
    placed = tuple(replace(pod, requests={}) for pod in workload.placement.pods)
    return replace(workload, placement=Placement(placed))
