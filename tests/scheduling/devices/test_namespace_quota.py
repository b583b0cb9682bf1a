"""ResourceQuota on devices: several quotas, foreign pods, vendors that HAMi checks at creation only, and the words."""

from __future__ import annotations

from dataclasses import replace

from gpus.vendors import VENDORS
from scheduling.devices.search.fleet import Fleet
from scheduling.devices.search.namespace_quota import NamespaceQuota
from scheduling.model.device import DeviceRequest
from scheduling.model.placement import Placement, PlacementRefusal, PodDeviceRequest
from tests.scheduling.fleet_helpers import ask, device, devices_of, fleet, node, pod, pod_set, reason_of

MEMORY = "limits.nvidia.com/gpumem"
CORES = "limits.nvidia.com/gpucores"


def quota(name: str = "gpus", namespace: str = "team", **hard: int) -> NamespaceQuota:
    names = {"memory": MEMORY, "cores": CORES}
    return NamespaceQuota(namespace, name, {names[key]: amount for key, amount in hard.items()})


def a_fleet(*quotas: NamespaceQuota, devices: int = 2) -> Fleet:
    made = fleet(node("n1", [device(f"g{number}") for number in range(devices)]))
    for each in quotas:
        made.quotas.set_quota(each)
    return made


def place(
    where: Fleet, asked: PodDeviceRequest, *, key: str = "", namespace: str = "team", count: int = 1
) -> Placement | PlacementRefusal:
    outcome = where.place([pod_set(asked, count, namespace=namespace)])
    if key and isinstance(outcome, Placement):
        where.reserve(key, outcome)
    return outcome


class TestLimits:
    def test_the_smallest_of_several_quotas_counts(self) -> None:
        nodes = a_fleet(quota("wide", memory=9000), quota("narrow", memory=3000))
        refused = place(nodes, pod(ask(1, 4000)))
        assert isinstance(refused, PlacementRefusal)
        assert refused.quota is not None
        assert (refused.quota.quota, refused.quota.limit) == ("team/narrow", 3000)

    def test_without_the_narrow_one_the_wide_one_counts(self) -> None:
        nodes = a_fleet(quota("wide", memory=9000), quota("narrow", memory=3000))
        assert nodes.quotas.delete_quota("team", "narrow")
        assert isinstance(place(nodes, pod(ask(1, 4000))), Placement)
        assert isinstance(place(nodes, pod(ask(1, 9500))), PlacementRefusal)

    def test_zero_blocks_and_absent_does_not(self) -> None:
        nodes = a_fleet(quota(memory=0))
        assert isinstance(place(nodes, pod(ask(1, 1))), PlacementRefusal)
        nodes.quotas.delete_quota("team", "gpus")
        assert isinstance(place(nodes, pod(ask(1, 1))), Placement)

    def test_another_namespace_is_free(self) -> None:
        assert isinstance(place(a_fleet(quota(memory=0)), pod(ask(1, 1)), namespace="others"), Placement)

    def test_limits_of_other_resources_are_ignored(self) -> None:
        nodes = a_fleet()
        assert not nodes.quotas.set_quota(NamespaceQuota("team", "k8s", {"requests.nvidia.com/gpu": 0, "cpu": 0}))
        assert isinstance(place(nodes, pod(ask(1, 1))), Placement)

    def test_setting_the_same_again_changes_nothing(self) -> None:
        nodes = a_fleet(quota(memory=100))
        assert not nodes.quotas.set_quota(quota(memory=100))
        assert nodes.quotas.set_quota(quota(memory=200))

    def test_cores_are_limited_too(self) -> None:
        nodes = a_fleet(quota(cores=50))
        assert isinstance(place(nodes, pod(ask(1, 100, 30)), key="team/a"), Placement)
        refused = place(nodes, pod(ask(1, 100, 30)))
        assert isinstance(refused, PlacementRefusal)
        assert refused.quota is not None
        assert (refused.quota.resource, refused.quota.used, refused.quota.asked) == (CORES, 30, 30)


class TestUsage:
    def test_foreign_pods_of_the_namespace_count(self) -> None:
        nodes = a_fleet(quota(memory=5000))
        n1 = nodes.nodes["n1"]
        nodes.set_node(replace(n1, external_usage={("team", "NVIDIA"): (3000, 0), ("others", "NVIDIA"): (9000, 0)}))
        assert isinstance(place(nodes, pod(ask(1, 2500))), PlacementRefusal)
        assert isinstance(place(nodes, pod(ask(1, 2000))), Placement)
        nodes.set_node(n1)
        assert isinstance(place(nodes, pod(ask(1, 5000))), Placement)

    def test_a_node_that_is_gone_takes_its_foreign_pods_along(self) -> None:
        nodes = a_fleet(quota(memory=5000))
        other = replace(node("n2", [device("h0")]), external_usage={("team", "NVIDIA"): (5000, 0)})
        nodes.set_node(other)
        assert isinstance(place(nodes, pod(ask(1, 1000))), PlacementRefusal)
        nodes.delete_node("n2")
        assert isinstance(place(nodes, pod(ask(1, 1000))), Placement)

    def test_preempted_workloads_do_not_count_in_the_quota(self) -> None:
        nodes = a_fleet(quota(memory=5000))
        place(nodes, pod(ask(1, 5000)), key="team/victim")
        asked = [pod_set(pod(ask(1, 5000)), namespace="team")]
        assert isinstance(nodes.place(asked), PlacementRefusal)
        assert isinstance(nodes.place(asked, without=["team/victim"]), Placement)
        assert isinstance(nodes.place(asked), PlacementRefusal)

    def test_a_pod_that_replaces_another_takes_its_part_of_the_quota(self) -> None:
        nodes = a_fleet(quota(memory=5000))
        held = place(nodes, pod(ask(1, 5000)), key="team/a")
        assert isinstance(held, Placement)
        asked = [pod_set(pod(ask(1, 5000)), namespace="team")]
        other = nodes.place(asked, instead_of=held.pods)
        assert isinstance(other, Placement)
        assert devices_of(other) != devices_of(held), "its device is still taken"
        assert isinstance(nodes.place(asked), PlacementRefusal)

    def test_the_larger_of_init_and_app_containers_counts(self) -> None:
        nodes = a_fleet(quota(memory=5000))
        both = pod(ask(1, 2000), ask(1, 2500), init=[ask(1, 5000)])
        assert isinstance(place(nodes, both, key="team/a"), Placement)
        assert isinstance(place(nodes, pod(ask(1, 1))), PlacementRefusal)
        nodes.release("team/a")
        assert isinstance(place(nodes, pod(ask(1, 2000), ask(1, 3500))), PlacementRefusal)


class TestWords:
    def test_the_refusal_names_quota_namespace_and_amounts(self) -> None:
        nodes = a_fleet(quota(memory=10_000))
        place(nodes, pod(ask(1, 6000)), key="team/held")
        refused = place(nodes, pod(ask(1, 5000)))
        assert isinstance(refused, PlacementRefusal)
        assert refused.message.endswith(
            "of 2 devices 2 are beyond the namespace's ResourceQuota (2/2 ResourceQuotaNotFit). "
            "ResourceQuota team/gpus allows its namespace 10000 of limits.nvidia.com/gpumem: 6000 are used, and the "
            "pod requests 5000."
        )

    def test_a_gang_says_what_is_its_own(self) -> None:
        nodes = a_fleet(quota(memory=10_000))
        place(nodes, pod(ask(1, 2000)), key="team/held")
        refused = place(nodes, pod(ask(1, 3000)), count=3)
        assert isinstance(refused, PlacementRefusal)
        assert (refused.replica, refused.placed) == (2, 2)
        assert str(refused.quota).endswith(
            "8000 are used, 6000 of them by other pods of this workload, and the pod requests 3000"
        )

    def test_a_percentage_is_resolved_in_words_too(self) -> None:
        refused = place(a_fleet(quota(memory=4000)), pod(ask(1, 0, 0, 50)))
        assert isinstance(refused, PlacementRefusal)
        assert refused.quota is not None
        assert refused.quota.asked == 5000

    def test_a_full_device_is_not_blamed_on_the_quota(self) -> None:
        nodes = a_fleet(quota(memory=10_000), devices=1)
        place(nodes, pod(ask(1, 8000)), key="others/held", namespace="others")
        refused = place(nodes, pod(ask(1, 5000)))
        assert isinstance(refused, PlacementRefusal)
        assert (reason_of(refused), refused.quota) == ("1/1 CardInsufficientMemory", None)


class TestOtherVendors:
    """HAMi looks at their quota when a pod is created; here that is when it would be placed."""

    def a_fleet(self) -> Fleet:
        made = Fleet(VENDORS)
        made.set_node(node("n1", [device("d0", vendor="DCU", type="DCU-K100", memory_mib=60_000)]))
        made.quotas.set_quota(NamespaceQuota("team", "dcu", {"limits.hygon.com/dcumem": 10_000}))
        return made

    def ask(self, memory_mib: int) -> PodDeviceRequest:
        return PodDeviceRequest(containers=((DeviceRequest("DCU", 1, memory_mib, cores_percent=10),),))

    def test_beyond_the_quota_no_node_takes_the_pod(self) -> None:
        nodes = self.a_fleet()
        assert isinstance(place(nodes, self.ask(6000), key="team/held"), Placement)
        refused = place(nodes, self.ask(6000))
        assert isinstance(refused, PlacementRefusal)
        assert reason_of(refused) == "ResourceQuotaNotFit"
        assert "6000 are used, and the pod requests 6000" in refused.message
        nodes.release("team/held")
        assert isinstance(place(nodes, self.ask(6000)), Placement)
