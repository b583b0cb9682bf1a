"""Elastic jobs that shrink while they hold quota, and that grow in a topology."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from scheduling.lifecycle.elastic import free_numbers
from scheduling.model.placement import Placement
from scheduling.model.topology import Topology
from scheduling.model.workload import Workload
from tests.scheduling.device_worlds import GPU, MEMORY, PLENTY, RACK, gpu_node, gpu_racks, gpus, rack_node
from tests.scheduling.topology_helpers import racks
from tests.scheduling.topology_worlds import NOW, admit, current, places, workload, world
from tests.scheduling.world_helpers import Builder, admissions, cycle, outcomes


def held(builder: Builder, name: str = "job") -> Workload:
    found = builder.world.workload(f"team/{name}")
    assert found is not None
    return found


def placement_of(builder: Builder) -> Placement:
    found = held(builder).placement
    assert found is not None
    return found


def ask_for(builder: Builder, count: int, *, pods_may_run: bool = True, gone: tuple[int, ...] = ()) -> bool:
    """The job asks for fewer pods, and the replicas in `gone` have ended."""
    now = held(builder)
    placement = now.placement
    if placement is not None:
        placement = Placement(tuple(pod for pod in placement.pods if pod.replica not in gone))
    pod_sets = (replace(now.pod_sets[0], count=count),)
    builder.world.set_workload(replace(now, pod_sets=pod_sets, placement=placement), 1001.0)
    return builder.world.scale_down("team/job", 1001.0, pods_may_run=pods_may_run)


def cores(builder: Builder) -> int:
    return sum(row.used for row in builder.world.cluster_queue_status("q").usage) // 1000


def test_quota_is_free_at_once_and_the_cohort_is_looked_at_again() -> None:
    builder = Builder().cohort("all").queue("q", {"default": 6}, "all").queue("other", {"default": 0}, "all")
    builder.running("job", "q", 1, count=6).pending("waiting", "other", 2)
    assert outcomes(cycle(builder.world)) == {"waiting": "WaitingForQuota"}
    assert not builder.world.has_active()
    assert ask_for(builder, 4)
    assert cores(builder) == 4
    assert admissions(cycle(builder.world, 1001.0)) == ["waiting"]
    admission = held(builder).admission
    assert admission is not None
    assert (admission.pod_set_assignments[0].count, admission.pod_set_assignments[0].resource_usage) == (
        4,
        {"cpu": 4000},
    )


def test_it_can_be_undone() -> None:
    builder = Builder().queue("q", {"default": 6}).running("job", "q", 1, count=6)
    now = held(builder)
    builder.world.set_workload(replace(now, pod_sets=(replace(now.pod_sets[0], count=2),)), 1000.0)
    point = builder.world.savepoint()
    assert builder.world.scale_down("team/job", 1001.0, pods_may_run=True)
    assert not builder.world.scale_down("team/job", 1001.0, pods_may_run=True), "once is enough"
    builder.world.undo(point)
    admission = held(builder).admission
    assert admission is not None
    assert admission.pod_set_assignments[0].count == 6
    assert builder.world.scale_down("team/job", 1001.0, pods_may_run=True)
    assert cores(builder) == 2


def test_to_no_pods_at_all_and_back() -> None:
    builder = Builder().queue("q", {"default": 6}).running("job", "q", 1, count=6)
    ask_for(builder, 0)
    assert cores(builder) == 0
    result = cycle(builder.pending("next", "q", 1, count=3, replaces="team/job").world, 1001.0)
    assert admissions(result) == ["next"]
    assert cores(builder) == 3


def test_devices_stay_held_until_the_pods_are_gone() -> None:
    builder = gpu_job(4)
    assert ask_for(builder, 2)
    now = held(builder)
    assert now.placement is not None
    assert [pod.replica for pod in now.placement.pods] == [0, 1, 2, 3]
    builder.pending("other", "q", [gpus(memory_mib=16384)])
    assert outcomes(cycle(builder.world, 1001.0)) == {"other": "WaitingForDevices"}
    ask_for(builder, 2, gone=(0, 2))
    now = held(builder)
    assert now.placement is not None
    assert [pod.replica for pod in now.placement.pods] == [1, 3]
    assert admissions(cycle(builder.world, 1002.0)) == ["other"], "what became free wakes those who wait for it"


def test_without_pods_the_highest_replicas_go() -> None:
    builder = gpu_job(4)
    assert ask_for(builder, 2, pods_may_run=False)
    now = held(builder)
    assert now.placement is not None
    assert [pod.replica for pod in now.placement.pods] == [0, 1]


def test_a_slice_that_grows_takes_the_numbers_that_are_free() -> None:
    builder = gpu_job(4)
    ask_for(builder, 2, gone=(0, 2))
    before = held(builder).placement
    assert before is not None
    builder.pending("next", "q", [gpus(memory_mib=16384, pods=5)], replaces="team/job")
    builder.world.set_node(gpu_node("n3", device_count=2))
    (admission,) = cycle(builder.world, 1003.0).admissions
    assert admission.placement is not None
    found = {pod.replica: pod for pod in admission.placement.pods}
    assert sorted(found) == [0, 1, 2, 3, 4]
    assert [found[pod.replica] for pod in before.pods] == list(before.pods)
    devices = [held.uuid for pod in found.values() for held in pod.slices]
    assert len(set(devices)) == 5


def test_a_slice_that_grows_before_the_pods_are_gone_keeps_all_of_them() -> None:
    builder = gpu_job(4)
    ask_for(builder, 2)
    builder.pending("next", "q", [gpus(memory_mib=16384, pods=3)], replaces="team/job")
    (admission,) = cycle(builder.world, 1003.0).admissions
    assert admission.placement is not None
    assert admission.pod_sets[0].count == 3
    assert [pod.replica for pod in admission.placement.pods] == [0, 1, 2, 3]


def gpu_job(pods: int) -> Builder:
    """A job that fills a device with each of its pods, on two nodes with two devices each."""
    builder = Builder().queue("q", {"default": PLENTY})
    for name in ("n1", "n2"):
        builder.world.set_node(gpu_node(name, device_count=2))
    cycle(builder.pending("job", "q", [gpus(memory_mib=16384, pods=pods)]).world)
    assert held(builder).placement is not None
    return builder


def test_free_numbers() -> None:
    assert free_numbers((), 2) == [0, 1]
    assert free_numbers((0, 2, 5), 4) == [1, 3, 4, 6]
    assert free_numbers((1,), 0) == []


class TestTopology:
    """11.12: pods that are there stay, only the difference is placed; fewer pods are cut from the end."""

    def test_only_the_difference_is_placed(self) -> None:
        made = world(racks({"r0": [2, 2], "r1": [2, 2]}))
        admit(made, workload("old", 3))
        before = places(made, "team/old")["set-0"]
        admit(made, replace(workload("new", 6), replaces="team/old"))
        after = places(made, "team/new")["set-0"]
        assert all(after[host] >= count for host, count in before.items())
        assert sum(after.values()) == 6
        assert made.workload("team/old") is None
        admit(made, workload("rest", 2))
        assert sum(places(made, "team/rest")["set-0"].values()) == 2

    def test_the_difference_does_not_go_where_the_old_pods_are(self) -> None:
        made = world(racks({"r0": [2], "r1": [1]}))
        admit(made, workload("old", 2))
        admit(made, replace(workload("new", 3), replaces="team/old"))
        assert places(made, "team/new") == {"set-0": {"r0-n0": 2, "r1-n0": 1}}

    def test_the_same_size_changes_nothing(self) -> None:
        made = world(racks({"r0": [2, 2]}))
        admit(made, workload("old", 3))
        before = places(made, "team/old")
        admit(made, replace(workload("new", 3), replaces="team/old"))
        assert places(made, "team/new") == before

    def test_it_waits_while_the_difference_has_no_room(self) -> None:
        made = world(racks({"r0": [2, 1]}))
        admit(made, workload("old", 2))
        made.set_workload(replace(workload("new", 4), replaces="team/old"), NOW)
        assert made.run_cycle(NOW).admissions == ()
        assert sum(places(made, "team/old")["set-0"].values()) == 2

    def test_fewer_pods_are_cut_from_the_end(self) -> None:
        made = world(racks({"r0": [2, 2], "r1": [2]}))
        admit(made, workload("job", 5))
        before = places(made, "team/job")["set-0"]
        now = current(made, "team/job")
        made.set_workload(replace(now, pod_sets=(replace(now.pod_sets[0], count=3),)), NOW)
        made.scale_down("team/job", NOW, pods_may_run=True)
        after = places(made, "team/job")["set-0"]
        assert sum(after.values()) == 3
        assert list(after) == list(before)[: len(after)]
        admit(made, workload("other", 3))
        assert sum(places(made, "team/other")["set-0"].values()) == 3

    def test_with_devices_the_pods_that_are_left_say_which_domains_are_held(self) -> None:
        builder = gpu_racks(*(rack_node(f"n{i}", f"r{i % 2}") for i in range(4)))
        cycle(builder.pending("job", "q", [gpus(memory_mib=16_000, pods=3)]).world)
        placement = held(builder).placement
        assert placement is not None
        first = placement.pods[0]
        ask_for(builder, 2, gone=(first.replica,))
        admission = held(builder).admission
        assert admission is not None
        topology = admission.pod_set_assignments[0].topology_assignment
        assert topology is not None
        assert [domain.values for domain in topology.domains] == [(pod.node,) for pod in placement.pods[1:]]
        builder.pending("next", "q", [gpus(memory_mib=16_000, pods=4)], replaces="team/job")
        (grown,) = cycle(builder.world, 1002.0).admissions
        assert grown.placement is not None
        assert sorted(pod.node for pod in grown.placement.pods) == ["n0", "n1", "n2", "n3"]
        assert sorted(pod.replica for pod in grown.placement.pods) == [0, 1, 2, 3]

    def test_what_is_left_stays_in_its_racks_when_a_node_fails(self) -> None:
        """Leaves wider than a node: where each pod is follows from its node, not from its number."""
        builder = Builder().flavor("tas", topology_name="racks")
        builder.world.set_topology(Topology("racks", (RACK,)))
        builder.queue("q", {"tas": PLENTY})
        for name in ("a0", "b0", "a1", "b1"):
            builder.world.set_node(rack_node(name, f"r{name[1]}", device_count=2))
        cycle(builder.pending("job", "q", [gpus(memory_mib=16_000, pods=6)]).world)
        placement = held(builder).placement
        assert placement is not None
        racks_of = {pod.replica: pod.node[1] for pod in placement.pods}
        first_rack = [replica for replica in sorted(racks_of) if racks_of[replica] == "0"]
        ask_for(builder, 3, gone=tuple(first_rack[:2]) + tuple(r for r in racks_of if racks_of[r] == "1")[:1])
        before = {pod.replica: pod.node for pod in placement_of(builder).pods}
        lost = min(before.values())
        builder.world.delete_node(lost)
        builder.world.set_workload(replace(held(builder), unhealthy_nodes=(lost,)), 1002.0)
        cycle(builder.world, 1002.0)
        after = {pod.replica: pod.node for pod in placement_of(builder).pods}
        assert after.keys() == before.keys()
        assert lost not in after.values()
        assert {replica: node[1] for replica, node in after.items()} == {r: node[1] for r, node in before.items()}


class Elastic:
    """Elastic jobs that change their sizes at random while their pods end one by one, on two nodes with two devices."""

    def __init__(self) -> None:
        self.builder = Builder().queue("q", {"default": {GPU: 6, MEMORY: 60_000}})
        for name in ("n1", "n2"):
            self.builder.world.set_node(gpu_node(name, device_count=2))
        self.now, self.serial = 1000.0, 0
        self.holders: dict[str, str] = {}
        """Job -> the slice that was last submitted or holds quota."""

    def workload(self, name: str) -> Workload | None:
        return self.builder.world.workload(f"team/{name}")

    def resize(self, job: str, count: int) -> None:
        name = self.holders.get(job)
        now = self.workload(name) if name is not None else None
        if name is None or now is None or now.admission is None:
            if name is not None:
                self.builder.world.delete_workload(f"team/{name}")
            self._submit(job, count, now.replaces if now is not None else None)
        elif count > now.pod_sets[0].count:
            self._submit(job, count, now.key)
        else:
            pod_sets = (replace(now.pod_sets[0], count=count),)
            self.builder.world.set_workload(replace(now, pod_sets=pod_sets), self.now)
            self.builder.world.scale_down(now.key, self.now, pods_may_run=True)

    def _submit(self, job: str, count: int, replaces: str | None) -> None:
        self.serial += 1
        old = self.builder.world.workload(replaces) if replaces is not None else None
        self.builder.pending(
            f"{job}-{self.serial}", "q", [gpus(memory_mib=4_000, pods=count)], replaces=old.key if old else None
        )
        cycle(self.builder.world, self.now)
        new = self.workload(f"{job}-{self.serial}")
        assert new is not None
        if new.admission is not None or old is None:
            self.holders[job] = f"{job}-{self.serial}"
        else:
            self.builder.world.delete_workload(new.key)

    def end_pod(self, job: str, which: int) -> None:
        """The Job controller ends a pod of a job that has more than it asks for."""
        now = self.workload(self.holders.get(job, ""))
        if now is None or now.placement is None or len(now.placement.pods) <= now.pod_sets[0].count:
            return
        pods = list(now.placement.pods)
        del pods[which % len(pods)]
        self.builder.world.set_workload(replace(now, placement=Placement(tuple(pods))), self.now)
        self.builder.world.scale_down(now.key, self.now, pods_may_run=True)

    def check(self) -> None:
        """What is charged is what is held, no device is over, and no number is there twice."""
        slots: Counter[tuple[str, str]] = Counter()
        wanted = 0
        for name in self.holders.values():
            now = self.workload(name)
            if now is None or now.admission is None:
                continue
            (assignment,) = now.admission.pod_set_assignments
            wanted += assignment.count
            assert assignment.resource_usage == {GPU: assignment.count, MEMORY: 4_000 * assignment.count}
            pods = now.placement.pods if now.placement is not None else ()
            assert len(pods) >= assignment.count
            assert len({pod.replica for pod in pods}) == len(pods)
            slots.update((held.node, held.uuid) for pod in pods for held in pod.slices)
        used = {row.resource: row.used for row in self.builder.world.cluster_queue_status("q").usage}
        assert used == {GPU: wanted, MEMORY: 4_000 * wanted}
        for node in ("n1", "n2"):
            for device in (f"{node}-gpu0", f"{node}-gpu1"):
                taken = self.builder.world.device_usage(node, device)
                assert taken == (slots[node, device], 4_000 * slots[node, device], 0)
                assert taken[1] <= 16_384


@given(
    st.lists(st.tuples(st.sampled_from(["resize", "end"]), st.sampled_from(["a", "b"]), st.integers(0, 5)), max_size=25)
)
def test_what_is_charged_is_what_is_held_whatever_sizes_jobs_take(steps: list[tuple[str, str, int]]) -> None:
    made = Elastic()
    for what, job, number in steps:
        made.now += 1.0
        if what == "resize":
            made.resize(job, number)
        else:
            made.end_pod(job, number)
        made.check()
