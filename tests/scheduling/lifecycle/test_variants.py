"""Workloads that pursue several flavors at once: the rules alone, over a World, as Kueue's specs tell them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from scheduling.lifecycle.conditions import VARIANT_GATE
from scheduling.lifecycle.context import WorkloadContext
from scheduling.lifecycle.reconcile import next_step
from scheduling.lifecycle.variants import GATE_SECONDS, Family, family_refusal, next_family_step, next_step_of_left
from scheduling.model.cluster_queue import ClusterQueue, ConcurrentAdmission
from scheduling.model.configuration import Configuration
from scheduling.model.local_queue import LocalQueue
from scheduling.model.selectors import LabelSelector
from scheduling.model.vendor import NVIDIA
from scheduling.model.vocabulary import ConditionType, MigrationMode
from scheduling.model.workload import Workload
from scheduling.outlook import effects
from scheduling.run_until_idle import run_until_idle
from tests.scheduling.world_helpers import NAMESPACE, Builder, Quotas, group, look_ahead, pod_set, preemption, workload

FLAVORS = ("reservation", "on-demand", "spot")
TRY = ConcurrentAdmission()
RETAIN = ConcurrentAdmission(MigrationMode.RETAIN_FIRST_ADMISSION)


class Life:
    """A parent with a variant for each flavor. Its pods stop when the test says so."""

    def __init__(self, quotas: Quotas, policy: ConcurrentAdmission = TRY, *, taken: bool = False) -> None:
        self.policy, self.now = policy, 0.0
        self.builder = Builder()
        self.world = self.builder.world
        self.active: dict[str, bool] = {}
        self.stopped: set[str] = set()
        self.told: list[str] = []
        self.set_quotas(quotas)
        for flavor in quotas if taken else ():
            low = workload(f"low-{flavor}", "queue", 5)
            self.world.set_workload(replace(low, parent=f"team/of-{low.name}", allowed_flavors=(flavor,)), 0.0)
            list(run_until_idle(self.world, 0.0))
        self.parent_key = self._add(workload("parent", "queue", 5, priority=10))
        for flavor in quotas:
            made = workload(f"of-{flavor}", "queue", 5, priority=10)
            self._add(
                replace(
                    made, parent=self.parent_key, allowed_flavors=(flavor,), closed_preemption_gates=(VARIANT_GATE,)
                )
            )

    def set_quotas(self, quotas: Quotas) -> None:
        for flavor in quotas:
            self.builder.flavor(flavor)
        self.queue = ClusterQueue(
            "queue",
            resource_groups=(group(quotas),),
            namespace_selector=LabelSelector(),
            preemption=preemption(within="LowerPriority"),
            concurrent_admission=self.policy,
        )
        self.world.set_cluster_queue(self.queue)
        self.world.set_local_queue(LocalQueue(NAMESPACE, "queue", "queue"))

    def _add(self, found: Workload) -> str:
        self.active[found.key] = True
        self.world.set_workload(found, self.now)
        return found.key

    def __getitem__(self, name: str) -> Workload:
        found = self.world.workload(f"{NAMESPACE}/{name}")
        assert found is not None
        return found

    @property
    def parent(self) -> Workload:
        return self["parent"]

    def variants(self) -> list[Workload]:
        return [self[key.partition("/")[2]] for key in self.active if key != self.parent_key]

    def run(self, seconds: float = 0.0) -> None:
        """Cycles and steps until nothing is due."""
        self.now += seconds
        for _ in range(50):
            decided = any(result.progressed for result in run_until_idle(self.world, self.now))
            if not (self._steps() or decided):
                return
        raise AssertionError("it does not come to rest")

    def _steps(self) -> int:
        count = sum(self._own_steps(key) for key in self.active)
        while True:
            wanted = {key for key, active in self.active.items() if active}
            family = Family.of(self.parent, self.variants(), wanted, self.queue)
            assert family is not None
            step = next_family_step(family, self.now)
            if step is None:
                return count
            count += 1
            assert count < 100, step
            key = step.workload.key
            self.told += [f"{event.reason} {step.workload.name}" for event in step.events]
            self.active[key] = step.activates or (self.active[key] and not step.deactivates)
            self.world.set_workload(replace(step.workload, active=self.active[key]), self.now)
            self._own_steps(key)

    def _own_steps(self, key: str) -> int:
        for count in range(20):
            found = self.world.workload(key)
            assert found is not None
            local = LocalQueue(NAMESPACE, "queue", "queue")
            stopped = key == self.parent_key and (key in self.stopped or not found.is_true(ConditionType.ADMITTED))
            context = WorkloadContext(
                Configuration(), local, self.queue, self.queue, wanted_active=self.active[key], pods_stopped=stopped
            )
            step = next_step(found, context, self.now)
            if step is None:
                return count
            self.world.set_workload(replace(step.workload, active=self.active[key]), self.now)
        raise AssertionError(f"{key} does not come to rest")

    def stop(self) -> None:
        """The parent's pods have stopped."""
        self.stopped.add(self.parent_key)
        self.run()
        self.stopped.clear()

    @property
    def runs_in(self) -> str:
        admission = self.parent.admission
        if admission is None or not self.parent.is_true(ConditionType.ADMITTED):
            return ""
        return admission.pod_set_assignments[0].flavors["cpu"]

    def awake(self) -> list[str]:
        return [
            key.removeprefix(f"{NAMESPACE}/of-") for key, on in self.active.items() if on and key != self.parent_key
        ]


def quotas(**cpu: int) -> Quotas:
    return {name.replace("_", "-"): amount for name, amount in cpu.items()}


def usage(life: Life) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in life.variants():
        if each.holds_quota and each.admission is not None:
            for assignment in each.admission.pod_set_assignments:
                flavor = assignment.flavors["cpu"]
                found[flavor] = found.get(flavor, 0) + assignment.resource_usage["cpu"]
    return found


def test_the_parent_is_admitted_with_the_preferred_flavor_that_has_room_and_charged_once() -> None:
    life = Life(quotas(reservation=5, spot=5))
    life.run()
    assert life.runs_in == "reservation"
    assert life.awake() == ["reservation"], "the less preferred one is deactivated"
    assert usage(life) == {"reservation": 5000}
    assert life.parent.admission is not None
    assert life.parent.admission.pod_set_assignments[0].resource_usage == {}, "the variant is charged, not the parent"
    assert life.parent.conditions[ConditionType.ADMITTED].message == "The variant of-reservation is admitted"
    assert life.told == ["DeactivatedVariant of-spot"]


def test_it_migrates_to_the_preferred_flavor_when_that_has_room() -> None:
    life = Life(quotas(reservation=0, spot=5))
    life.run()
    assert (life.runs_in, life.awake()) == ("spot", ["reservation", "spot"])
    life.set_quotas(quotas(reservation=5, spot=5))
    life.run()
    assert life.parent.conditions[ConditionType.EVICTED].reason == "VariantEvicted"
    evicted = life["of-spot"].conditions[ConditionType.EVICTED]
    assert evicted.reason == "FlavorMigration"
    assert evicted.message == (
        f"Evicted to accommodate a workload (UID: {life['of-reservation'].uid}) due to migration to more favorable "
        "resource flavor"
    )
    assert usage(life) == {"spot": 5000}, "it holds its quota until its pods have stopped"
    life.stop()
    assert (life.runs_in, life.awake(), usage(life)) == ("reservation", ["reservation"], {"reservation": 5000})


def test_it_migrates_to_no_flavor_after_the_last_acceptable_one() -> None:
    policy = ConcurrentAdmission(last_acceptable_flavor="reservation")
    life = Life(quotas(reservation=0, on_demand=0, spot=5), policy)
    life.run()
    assert (life.runs_in, life.awake()) == ("spot", ["reservation", "spot"])
    life.set_quotas(quotas(reservation=0, on_demand=5, spot=5))
    life.run()
    assert life.runs_in == "spot"
    assert not life.parent.is_true(ConditionType.EVICTED)
    life.set_quotas(quotas(reservation=5, on_demand=5, spot=5))
    life.run()
    life.stop()
    assert life.runs_in == "reservation"


def test_the_first_admission_is_retained_where_the_policy_says_so() -> None:
    life = Life(quotas(reservation=0, spot=5), RETAIN)
    life.run()
    assert (life.runs_in, life.awake()) == ("spot", ["spot"])
    life.set_quotas(quotas(reservation=5, spot=5))
    life.run()
    assert (life.runs_in, life.awake()) == ("spot", ["spot"])


def test_one_variant_at_a_time_may_preempt() -> None:
    life = Life(quotas(reservation=5, spot=5), taken=True)
    list(run_until_idle(life.world, 0.0))
    assert not life.runs_in
    life.run(1)
    assert life["of-reservation"].gate_opened_at == 1.0
    assert life["of-spot"].gate_opened_at is None
    assert life["low-reservation"].is_true(ConditionType.PREEMPTED)
    life.run(GATE_SECONDS - 1)
    assert life["of-spot"].gate_opened_at is None
    life.run(1)
    assert life["of-spot"].gate_opened_at == GATE_SECONDS + 1
    assert life.told.count("PreemptionUngatedVariant of-spot") == 1


def test_a_parent_that_is_held_holds_its_variants_and_is_released_with_them() -> None:
    life = Life(quotas(reservation=5, spot=5))
    life.run()
    life.active[life.parent_key] = False
    life.run()
    life.stop()
    assert (life.runs_in, life.awake(), usage(life)) == ("", [], {})
    life.active[life.parent_key] = True
    life.world.set_workload(replace(life.parent, active=True), life.now)
    life.run()
    assert life.runs_in == "reservation"


@given(st.lists(st.tuples(*[st.integers(0, 1)] * 3), min_size=1, max_size=6), st.sampled_from([None, RETAIN]))
def test_whatever_becomes_free_it_runs_in_one_flavor_within_quota(
    turns: Iterable[tuple[int, ...]], policy: ConcurrentAdmission | None
) -> None:
    life: Life | None = None
    for free in turns:
        cells = dict(zip(FLAVORS, (5 * each for each in free), strict=True))
        if life is None:
            life = Life(cells, policy or TRY)
        life.set_quotas(cells)
        life.run()
        before = life.runs_in
        life.stop()
        running = [each for each in life.variants() if each.is_true(ConditionType.ADMITTED)]
        assert len(running) <= 1, "no two variants run at a time"
        assert bool(life.runs_in) == bool(running)
        if running:
            assert life.runs_in == running[0].variant_flavor
        if any(free) and not before:
            assert life.runs_in, "there is room"


def test_a_parent_that_runs_takes_its_quota_over_when_there_is_no_policy_any_more() -> None:
    life = Life(quotas(reservation=5, spot=5))
    life.run()
    variants = life.variants()
    wanted = {key for key, active in life.active.items() if active}
    step = next_step_of_left(life.parent, variants, wanted, 1.0)
    assert step is not None
    assert step.workload.key == life.parent_key
    assert step.workload.admission == life["of-reservation"].admission
    step = next_step_of_left(step.workload, variants, wanted, 1.0)
    assert step is not None
    assert (step.workload.name, step.deactivates) == ("of-reservation", True)
    assert next_step_of_left(life.parent, (), (), 1.0) is None


def test_the_variants_of_a_workload_that_has_ended_try_no_more() -> None:
    life = Life(quotas(reservation=0, spot=0))
    life.run()
    wanted = {each.key for each in life.variants()}
    names = []
    while (step := next_step_of_left(None, life.variants(), wanted, 1.0)) is not None:
        wanted.discard(step.workload.key)
        names.append(step.workload.name)
        assert step.deactivates
    assert names == ["of-reservation", "of-spot"]


def test_what_is_placed_by_us_has_no_variants() -> None:
    life = Life(quotas(reservation=5, spot=5))
    parent, queue = life.parent, life.queue
    gpus = {NVIDIA.resources.count: 1, NVIDIA.resources.memory: 1000}
    assert family_refusal(parent, queue, ()) == ""
    for words, arguments in (
        ("topology: flavor spot", {"with_topology": ["spot"]}),
        ("MultiKueue", {"hands_over": True}),
        ("set quota_only of flavor spot", {"placed": ["spot"]}),
        ("elastic jobs", {"is_elastic": True}),
    ):
        assert words in family_refusal(parent, queue, (), **arguments)
    with_devices = replace(parent, pod_sets=(pod_set({"cpu": 1}), pod_set(gpus, name="worker")))
    assert "assigned here: pod set worker asks for some" in family_refusal(with_devices, queue, (NVIDIA,))
    assert family_refusal(with_devices, queue, ()) == "", "another program assigns them"


def test_a_change_of_quota_starts_a_job_once_whatever_variants_it_has() -> None:
    life = Life(quotas(reservation=0, spot=0))
    life.run()
    before = look_ahead(life.world, 1.0)
    life.set_quotas(quotas(reservation=5, spot=5))
    assert effects(before, look_ahead(life.world, 1.0)).starts == {life.parent_key: "queue"}


def test_a_migration_is_no_start() -> None:
    life = Life(quotas(reservation=0, spot=5))
    life.run()
    before = look_ahead(life.world, 1.0)
    life.set_quotas(quotas(reservation=5, spot=5))
    assert effects(before, look_ahead(life.world, 1.0)).starts == {}


def test_a_parent_is_explained_before_it_has_variants_too() -> None:
    life = Life(quotas(reservation=0, spot=1))
    for each in life.variants():
        life.world.delete_workload(each.key)
    found = life.world.explain(life.parent_key)
    assert (found.state, [each.flavor for each in found.flavors]) == ("CannotStart", ["reservation", "spot"])
    assert life.world.cluster_queue_status("queue").inadmissible == 0
    assert life.world.workload(life.parent_key) == life.parent


def test_a_queue_counts_a_job_once() -> None:
    life = Life(quotas(reservation=0, spot=0))
    list(run_until_idle(life.world, 0.0))
    status, counts = life.world.cluster_queue_status("queue"), life.world.pending_counts("queue")
    assert (status.pending + status.inadmissible, sum(counts.local_queues[f"{NAMESPACE}/queue"])) == (1, 1)
    life.set_quotas(quotas(reservation=0, spot=5))
    life.run()
    status = life.world.cluster_queue_status("queue")
    assert (status.pending + status.inadmissible, status.reserving, status.admitted) == (0, 1, 1)


def test_no_variant_is_admitted_with_other_pods_than_its_parent_has() -> None:
    life = Life(quotas(reservation=0, spot=5))
    asks_for_more = replace(life.parent, pod_sets=(replace(life.parent.pod_sets[0], count=3),))
    life.world.set_workload(asks_for_more, life.now)
    life.run()
    assert [each.admission for each in life.variants()] == [None, None]
    assert not any(life.active[each.key] for each in life.variants())
