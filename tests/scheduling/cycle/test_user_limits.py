"""Limits by user on ClusterQueues and Cohorts, as cycles decide by them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, NamedTuple

from hypothesis import example, given, settings
from hypothesis import strategies as st

from scheduling.advice.waiting_rules import Rule, WaitState
from scheduling.model.cohort import UserLimit
from scheduling.model.workload import Workload
from scheduling.run_until_idle import run_until_idle
from scheduling.world import World
from tests.scheduling.world_helpers import (
    NAMESPACE,
    Builder,
    admissions,
    admitted,
    cycle,
    messages,
    names,
    pod_set,
    preemption,
    preemptions,
    reason_of,
    settled,
    workload,
)

TWO_CPUS = (UserLimit(users=("*",), resources={"cpu": 2000}),)
ONE_WORKLOAD = (UserLimit(users=("*",), workloads=1),)
ENGINEERS = (UserLimit(groups=("eng",), workloads=1),)
ALL_GROUPS = (UserLimit(groups=("*",), resources={"cpu": 2000}),)
GROUPS: Final = {"ada": ("eng", "ops"), "bob": ("eng",), "": ()}
NOW = 1000.0


def holders(world: World) -> list[str]:
    return names(info.workload for result in settled(world) for info in result.admissions)


def test_a_user_at_the_limit_waits_while_others_start() -> None:
    builder = Builder().queue("q", {"default": 10}, user_limits=TWO_CPUS)
    for number in range(3):
        builder.pending(f"ada{number}", "q", 1, submitted_by="ada", at=float(number))
    builder.pending("bob", "q", 1, submitted_by="bob", at=9.0)
    assert holders(builder.world) == ["ada0", "ada1", "bob"]
    assert reason_of(builder.world, "ada2") == "WaitingForUserLimit"
    builder.world.delete_workload(f"{NAMESPACE}/ada0")
    assert holders(builder.world) == ["ada2"]


def test_the_message_names_limit_user_and_amounts() -> None:
    builder = Builder().queue("q", {"default": 10}, cohort="all").cohort("all", user_limits=TWO_CPUS)
    builder.running("held", "q", 1, submitted_by="ada").pending("new", "q", 2, submitted_by="ada")
    (said,) = messages(cycle(builder.world)).values()
    assert said == "cpu of user ada in Cohort all: 1 core held, 2 cores requested, at most 2 cores allowed"


def test_a_group_at_the_limit_waits_whatever_its_users_hold() -> None:
    builder = Builder().queue("q", {"default": 10}, user_limits=ENGINEERS)
    builder.pending("ada", "q", 1, submitted_by="ada", user_groups=("eng",))
    builder.pending("bob", "q", 1, submitted_by="bob", user_groups=("eng",), at=1.0)
    builder.pending("eve", "q", 1, submitted_by="eve", user_groups=("law",), at=2.0)
    assert holders(builder.world) == ["ada", "eve"]
    assert reason_of(builder.world, "bob") == "WaitingForUserLimit"
    (said,) = messages(
        cycle(builder.pending("z", "q", 1, submitted_by="z", user_groups=("eng",), at=9.0).world)
    ).values()
    assert said == "workloads of group eng in ClusterQueue q: 1 with quota, at most 1 allowed"
    builder.world.delete_workload(f"{NAMESPACE}/ada")
    assert holders(builder.world) == ["bob"]


def test_a_user_counts_in_the_first_group_that_is_limited_from_the_queue_up() -> None:
    """The queue limits ops, and the cohort eng: ada counts in ops alone, as the queue comes first."""
    ops = (UserLimit(groups=("ops",), workloads=2),)
    builder = Builder().cohort("all", user_limits=ENGINEERS).queue("q", {"default": 9}, cohort="all", user_limits=ops)
    for number in range(3):
        builder.pending(f"w{number}", "q", 1, submitted_by="ada", user_groups=("eng", "ops"), at=float(number))
    assert holders(builder.world) == ["w0", "w1"]


def test_a_star_limits_all_groups_together_that_have_no_limit_and_no_user_without_a_group() -> None:
    limits = (*ALL_GROUPS, UserLimit(groups=("eng",), resources={"cpu": 3000}))
    builder = Builder().queue("q", {"default": 10}, user_limits=limits)
    builder.pending("law", "q", 1, submitted_by="eve", user_groups=("law",))
    builder.pending("ops", "q", 1, submitted_by="joe", user_groups=("ops",), at=1.0)
    builder.pending("more", "q", 1, submitted_by="joe", user_groups=("ops",), at=2.0)
    builder.pending("eng", "q", 3, submitted_by="ada", user_groups=("eng",), at=3.0)
    builder.pending("none", "q", 3, submitted_by="zoe", at=4.0)
    assert holders(builder.world) == ["eng", "law", "none", "ops"]
    (said,) = messages(
        cycle(builder.pending("z", "q", 1, submitted_by="e", user_groups=("law",), at=9.0).world)
    ).values()
    assert said.startswith("cpu of all other groups in ClusterQueue q: 2 cores held")


def test_the_limits_of_a_user_and_of_the_group_both_hold() -> None:
    limits = (UserLimit(users=("ada",), workloads=1), UserLimit(groups=("eng",), workloads=2))
    builder = Builder().queue("q", {"default": 10}, user_limits=limits)
    for number, user in enumerate(("ada", "ada", "bob", "bob")):
        builder.pending(f"w{number}", "q", 1, submitted_by=user, user_groups=("eng",), at=float(number))
    assert holders(builder.world) == ["w0", "w2"]


def test_workloads_of_one_user_with_other_groups_are_not_equal() -> None:
    """ada left the group eng between two submissions: the refusal of the second does not refuse the third."""
    builder = Builder().queue("q", {"default": 10}, user_limits=ENGINEERS)
    builder.pending("first", "q", 1, submitted_by="ada", user_groups=("eng",))
    builder.pending("second", "q", 1, submitted_by="ada", user_groups=("eng",), at=1.0)
    builder.pending("third", "q", 1, submitted_by="ada", at=2.0)
    assert holders(builder.world) == ["first", "third"]


def test_a_replaced_slice_counts_neither_for_the_user_nor_for_the_group() -> None:
    limits = (*TWO_CPUS, UserLimit(groups=("eng",), resources={"cpu": 2000}))
    builder = Builder().queue("q", {"default": 10}, user_limits=limits)
    of_ada: dict[str, Any] = {"submitted_by": "ada", "user_groups": ("eng",)}
    builder.running("old", "q", 1, **of_ada)
    builder.pending("new", "q", 1, count=2, replaces=f"{NAMESPACE}/old", **of_ada)
    assert holders(builder.world) == ["new"]


def test_a_limit_of_workloads_counts_those_with_quota() -> None:
    builder = Builder().queue("q", {"default": 10}, user_limits=ONE_WORKLOAD)
    builder.running("held", "q", 1, submitted_by="ada").pending("new", "q", 1, submitted_by="ada")
    (said,) = messages(cycle(builder.world)).values()
    assert said == "workloads of user ada in ClusterQueue q: 1 with quota, at most 1 allowed"


def test_the_levels_of_one_user_hold_no_other_user() -> None:
    builder = Builder().queue("q", {"default": 10}, user_limits=(*TWO_CPUS, *ENGINEERS))
    for user in ("ada", "bob"):
        builder.running(user, "q", 1, submitted_by=user, user_groups=("eng",))
    (level,) = builder.world.objects.user_levels("q", "ada")
    assert (level.users["ada"].workloads, level.groups["eng"].workloads) == (1, 2)
    assert level.users.keys() == {"ada"}
    assert builder.world.objects.user_levels("q")[0].users.keys() == {"ada", "bob"}


def test_a_users_own_entry_takes_the_place_of_the_one_for_everybody() -> None:
    limits = (*ONE_WORKLOAD, UserLimit(users=("ada",), resources={"cpu": 3000}))
    builder = Builder().queue("q", {"default": 10}, user_limits=limits)
    for name in ("ada", "bob"):
        for number in range(4):
            builder.pending(f"{name}{number}", "q", 1, submitted_by=name, at=float(number))
    assert holders(builder.world) == ["ada0", "ada1", "ada2", "bob0"]


def test_workloads_without_a_known_user_count_together() -> None:
    builder = Builder().queue("q", {"default": 10}, user_limits=ONE_WORKLOAD)
    builder.pending("a", "q", 1).pending("b", "q", 1, at=1.0)
    result = cycle(builder.world)
    assert admissions(result) == ["a"]
    (said,) = messages(cycle(builder.world)).values()
    assert said == "workloads of users that are not known in ClusterQueue q: 1 with quota, at most 1 allowed"


def test_a_cohorts_limit_counts_what_the_user_holds_in_all_queues_below() -> None:
    builder = Builder().cohort("top", user_limits=TWO_CPUS).cohort("mid", "top")
    builder.queue("a", {"default": 5}, cohort="mid").queue("b", {"default": 5}, cohort="top")
    builder.running("held", "a", 1, submitted_by="ada")
    builder.pending("one", "b", 1, submitted_by="ada").pending("two", "a", 1, submitted_by="ada", at=1.0)
    assert holders(builder.world) == ["one"], "two queues' heads of one user in one cycle share one limit"
    assert reason_of(builder.world, "two") == "WaitingForUserLimit"


def test_nothing_is_preempted_for_a_user_at_the_limit() -> None:
    builder = Builder().queue("q", {"default": 2}, preemption=preemption("LowerPriority"), user_limits=ONE_WORKLOAD)
    builder.running("held", "q", 1, submitted_by="ada").running("other", "q", 1, submitted_by="bob")
    builder.pending("urgent", "q", 1, submitted_by="ada", priority=9)
    assert preemptions(cycle(builder.world)) == {}
    assert reason_of(builder.world, "urgent") == "WaitingForUserLimit"


def test_a_preemptor_counts_for_its_user_while_its_victims_stop() -> None:
    builder = Builder().cohort("all", user_limits=ONE_WORKLOAD)
    builder.queue("a", {"default": (1, 0, 0)}, cohort="all", preemption=preemption("LowerPriority"))
    builder.queue("b", {"default": (1, 0, 0)}, cohort="all")
    builder.running("victim", "a", 1, submitted_by="bob")
    builder.pending("urgent", "a", 1, submitted_by="ada", priority=9)
    builder.pending("late", "b", 1, submitted_by="ada", at=5.0)
    result = cycle(builder.world)
    assert preemptions(result) == {"victim": "InClusterQueue"}
    assert admissions(result) == []
    builder.world.release_workload(f"{NAMESPACE}/victim", NOW)
    assert holders(builder.world) == ["urgent"]


def test_partial_admission_keeps_within_the_limit() -> None:
    builder = Builder().queue("q", {"default": 10}, user_limits=TWO_CPUS)
    builder.pending("gang", "q", [pod_set(1, 6, min_count=1)], submitted_by="ada")
    (decision,) = cycle(builder.world).admissions
    assert decision.pod_sets[0].count == 2


def test_a_request_beyond_the_limit_can_never_start() -> None:
    builder = Builder().queue("q", {"default": 10}, user_limits=TWO_CPUS).pending("big", "q", 3, submitted_by="ada")
    cycle(builder.world)
    assert reason_of(builder.world, "big") == "ExceedsMaxQuota"
    found = builder.world.explain(f"{NAMESPACE}/big")
    assert (found.state, found.rule) == (WaitState.CANNOT_START, Rule.USER_LIMIT)
    assert found.remedy == "It can never start unless it requests less, or the limit of its user is raised."


def test_equal_workloads_of_other_users_are_still_decided() -> None:
    builder = Builder().queue("q", {"default": 10}, user_limits=ONE_WORKLOAD)
    builder.running("held", "q", 1, submitted_by="ada")
    for number in range(50):
        builder.pending(f"ada{number}", "q", 1, submitted_by="ada", at=float(number))
    builder.pending("bob", "q", 1, submitted_by="bob", at=99.0)
    assert admissions(cycle(builder.world)) == []
    assert admissions(cycle(builder.world)) == ["bob"], "one refusal is for all equal workloads of the user"


def test_users_pass_one_at_the_limit_in_a_queue_with_several_flavors() -> None:
    builder = Builder().queue("q", {"cheap": 10, "dear": 10, "dearest": 10}, user_limits=ONE_WORKLOAD)
    builder.running("held", "q", 1, flavor="cheap", submitted_by="ada")
    for number in range(1, 6):
        builder.pending(f"ada{number}", "q", {"cpu": f"{number}"}, submitted_by="ada", at=float(number))
    builder.pending("bob", "q", 1, submitted_by="bob", at=99.0)
    assert holders(builder.world) == ["bob"], "each shape of ada is refused once, and none stays at the head"
    builder.world.delete_workload(f"{NAMESPACE}/held")
    (decision,) = (each for result in settled(builder.world) for each in result.admissions)
    assert decision.pod_sets[0].flavors == {"cpu": "cheap"}, "the search begins with the first flavor again"


def test_a_limit_may_come_and_go_while_workloads_wait() -> None:
    builder = Builder().queue("q", {"default": 2})
    builder.running("held", "q", 2, submitted_by="ada")
    builder.pending("ada", "q", 1, submitted_by="ada").pending("bob", "q", 1, submitted_by="bob", at=1.0)
    settled(builder.world)
    builder.queue("q", {"default": 4}, user_limits=ONE_WORKLOAD)
    assert holders(builder.world) == ["bob"]
    builder.queue("q", {"default": 4})
    assert holders(builder.world) == ["ada"]


def test_a_workload_of_another_user_now_counts_for_that_user() -> None:
    builder = Builder().queue("q", {"default": 10}, user_limits=ONE_WORKLOAD)
    builder.running("held", "q", 1, submitted_by="ada").pending("new", "q", 1, submitted_by="ada")
    assert holders(builder.world) == []
    builder.world.set_workload(admitted(workload("held", "q", 1, submitted_by="bob"), "q"), NOW)
    assert holders(builder.world) == ["new"]
    builder.pending("bob", "q", 1, submitted_by="bob", at=2.0)
    assert holders(builder.world) == []


class Submit(NamedTuple):
    user: str
    queue: str
    cpus: int


class End(NamedTuple):
    number: int


class SetLimits(NamedTuple):
    """`node`: the cohort `all`, or the ClusterQueue `b`."""

    node: str
    limits: tuple[UserLimit, ...]


Event = Submit | End | SetLimits
_EVENTS = st.one_of(
    st.builds(Submit, st.sampled_from(("ada", "bob", "")), st.sampled_from(("a", "b", "c")), st.integers(1, 3)),
    st.builds(End, st.integers(0, 20)),
    st.builds(
        SetLimits, st.sampled_from(("all", "b")), st.sampled_from((TWO_CPUS, ONE_WORKLOAD, ENGINEERS, ALL_GROUPS, ()))
    ),
)


class Trial:
    """A cohort of three queues, the limits of the moment, and the names of workloads that are known."""

    def __init__(self) -> None:
        self.builder = Builder(fair=["LessThanOrEqualToFinalShare"]).cohort("all", quotas={"default": 2})
        for name in ("a", "b", "c"):
            reclaims = preemption("LowerPriority", "Any")
            self.builder.queue(name, {"default": 2}, cohort="all", preemption=reclaims)
        self.limits: dict[str, tuple[UserLimit, ...]] = {"all": (), "b": ()}
        self.known: list[str] = []

    def apply(self, event: Event, number: int) -> None:
        world = self.builder.world
        match event:
            case Submit(user, queue, cpus):
                self.known.append(f"w{number}")
                more = {"submitted_by": user, "user_groups": GROUPS[user], "at": float(number)}
                self.builder.pending(f"w{number}", queue, cpus, **more)
            case End(index) if self.known:
                world.delete_workload(f"{NAMESPACE}/{self.known.pop(index % len(self.known))}")
            case SetLimits("all", limits):
                self.limits["all"] = limits
                world.set_cohort(replace(world.objects.cohorts["all"], user_limits=limits))
            case SetLimits(_, limits):
                self.limits["b"] = limits
                known = world.objects.cluster_queue("b")
                assert known is not None
                world.set_cluster_queue(replace(known, user_limits=limits))

    def settle(self, number: int) -> None:
        """Run cycles, and compare each admission's user with the limits, by what the workloads say themselves."""
        for result in run_until_idle(self.builder.world, NOW + number):
            for admission in result.admissions:
                self._check(admission.workload)
            for each in result.preemptions:
                self.builder.world.release_workload(each.workload, NOW + number)

    def _check(self, key: str) -> None:
        decided = self.builder.world.workload(key)
        assert decided is not None
        group = self._group_of(decided)
        for node, stated in self.limits.items():
            if stated and node in ("all", decided.queue_name) and (stated[0].users or group in stated[0].groups):
                same = self._held_by(decided.submitted_by) if stated[0].users else self._held_in(group)
                held = [each for each in same if node in ("all", each.queue_name)]
                cpus = sum(_cpus(each) for each in held)
                assert not stated[0].workloads or len(held) <= stated[0].workloads
                assert not stated[0].resources or cpus <= stated[0].resources["cpu"]

    def _held_by(self, user: str) -> list[Workload]:
        return [each for each in self._held() if each.submitted_by == user]

    def _held_in(self, group: str) -> list[Workload]:
        return [each for each in self._held() if self._group_of(each) == group]

    def _held(self) -> list[Workload]:
        known = (self.builder.world.workload(f"{NAMESPACE}/{name}") for name in self.known)
        return [each for each in known if each is not None and each.holds_quota]

    def _group_of(self, workload: Workload) -> str:
        """The group in which a workload counts: of the queue's limits, else of the cohort's."""
        for stated in (self.limits.get(workload.queue_name, ()), self.limits["all"]):
            limited = [name for limit in stated for name in limit.groups]
            for name in (*workload.user_groups, *(["*"] if workload.user_groups else [])):
                if name in limited:
                    return name
        return ""


def _cpus(workload: Workload) -> int:
    assert workload.admission is not None
    return sum(assigned.resource_usage["cpu"] for assigned in workload.admission.pod_set_assignments)


_LIMIT_LIFTED: Final = [
    *((Submit("ada", "a", 1), False) for _ in range(2)),
    (SetLimits("all", TWO_CPUS), False),
    *((Submit("ada", "a", 1), False) for _ in range(3)),
    (End(1), False),
    (SetLimits("all", ()), True),
]
"""Equal workloads of one user wait; the limit that keeps them apart from others' is lifted, and that is undone."""


@given(st.lists(st.tuples(_EVENTS, st.booleans()), max_size=25))
@example(_LIMIT_LIFTED)
@settings(max_examples=80)
def test_no_admission_lifts_a_user_over_a_limit(events: list[tuple[Event, bool]]) -> None:
    """Whatever comes, ends, changes, and is undone."""
    trial = Trial()
    for number, (event, undone) in enumerate(events):
        if undone:
            point = trial.builder.world.savepoint()
            before = dict(trial.limits), list(trial.known)
            trial.apply(event, number)
            trial.settle(number)
            trial.builder.world.undo(point)
            trial.limits, trial.known = before
        else:
            trial.apply(event, number)
        trial.settle(number)
