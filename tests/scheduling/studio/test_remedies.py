"""Every remedy, applied for real, starts the workload at once, and the next smaller one does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduling.advice.waiting_rules import WaitState
from scheduling.model.cluster_queue import ClusterQueue
from scheduling.model.cohort import Cohort, ResourceQuota
from scheduling.model.pod import PodTemplate
from scheduling.model.workload import PodSet, Workload
from scheduling.run_until_idle import run_until_idle
from scheduling.studio.remedies import Remedies, find_remedies
from scheduling.studio.remedy import Remedy, RemedyKind
from scheduling.studio.world_changes import Change, EndWorkload, SetObject, apply_changes
from scheduling.world import World
from tests.scheduling.device_worlds import GPU, MEMORY, gpu_node, gpus
from tests.scheduling.world_helpers import NAMESPACE, Builder, preemption, settled
from tests.scheduling.worlds import Plan, plans

NOW = 1000.0
Build = Callable[[], World]


def starts_for_real(world: World, changes: tuple[Change, ...], key: str) -> bool:
    """Whether the workload holds quota when nothing more happens after these changes."""
    apply_changes(world, changes, NOW)
    holding = False
    for result in run_until_idle(world, NOW):
        holding = holding or key in {each.workload for each in result.admissions}
        for victim in result.preemptions:
            holding = holding and victim.workload != key
            world.release_workload(victim.workload, NOW)
    return holding


def check(build: Build, key: str, found: Remedies) -> None:
    """All remedies of a workload, against Worlds that were built for each."""
    for remedy in found.remedies:
        assert starts_for_real(build(), remedy.changes, key), remedy
        for smaller in next_smaller(build(), remedy):
            assert not starts_for_real(build(), smaller, key), (remedy, smaller)


def next_smaller(world: World, remedy: Remedy) -> Iterator[tuple[Change, ...]]:
    """The changes that are one step less than the remedy, each."""
    if remedy.kind is RemedyKind.LESS:
        ((resource, amount),) = remedy.after.items()
        (change,) = remedy.changes
        assert isinstance(change, SetObject)
        assert isinstance(change.value, Workload)
        assert isinstance(amount, int)
        pod_sets = tuple(
            _more(pod_set, resource, amount + 1) if pod_set.name == remedy.subject else pod_set
            for pod_set in change.value.pod_sets
        )
        yield (SetObject(replace(change.value, pod_sets=pod_sets)),)
    elif remedy.kind is RemedyKind.QUOTA:
        (change,) = remedy.changes
        assert isinstance(change, SetObject)
        assert isinstance(change.value, ClusterQueue | Cohort)
        for resource in remedy.after:
            yield (SetObject(_with_less(change.value, remedy, resource)),)
    elif remedy.kind is RemedyKind.OTHERS_END and remedy.at_least == len(remedy.workloads):
        holders = {key for name in world.cluster_queue_names() for key in world.objects.holders(name)}
        if len(holders) <= 12:
            for size in range(len(remedy.workloads)):
                for keys in combinations(sorted(holders), size):
                    yield tuple(EndWorkload(each) for each in keys)


def _more(pod_set: PodSet, resource: str, amount: int) -> PodSet:
    """Another count, or another request of its only container."""
    if not resource:
        return replace(pod_set, count=amount)
    manifest = pod_set.template.manifest
    (container,) = manifest["spec"]["containers"]
    text = f"{amount}m" if resource == "cpu" else str(amount)
    resources = {
        kind: {**found, **({resource: text} if resource in found else {})}
        for kind, found in container["resources"].items()
    }
    spec = {**manifest["spec"], "containers": [{**container, "resources": resources}]}
    return replace(pod_set, template=PodTemplate.from_manifest({**manifest, "spec": spec}))


def _with_less(spec: ClusterQueue | Cohort, remedy: Remedy, resource: str) -> ClusterQueue | Cohort:
    """One base unit less of the raised quota."""
    flavor_name = remedy.subject.rpartition(" ")[2]

    def less(quota: ResourceQuota) -> ResourceQuota:
        if remedy.field_name == "nominalQuota":
            return replace(quota, nominal=quota.nominal - 1)
        return replace(quota, borrowing_limit=(quota.borrowing_limit or 0) - 1)

    groups = tuple(
        replace(
            group,
            flavors=tuple(
                replace(
                    flavor,
                    resources={
                        name: less(quota) if (flavor.name, name) == (flavor_name, resource) else quota
                        for name, quota in flavor.resources.items()
                    },
                )
                for flavor in group.flavors
            ),
        )
        for group in spec.resource_groups
    )
    return replace(spec, resource_groups=groups)


def _settled_world(plan: Plan) -> World:
    builder = plan.build()
    settled(builder.world, NOW)
    return builder.world


@given(plans())
@settings(max_examples=25)
def test_remedies_of_random_worlds_start_their_workload_and_smaller_ones_do_not(plan: Plan) -> None:
    world = _settled_world(plan)
    for each in plan.workloads[:4]:
        found = find_remedies(world, each.key, NOW, {"high": 3, "highest": 9})
        check(lambda: _settled_world(plan), each.key, found)


@given(st.lists(st.tuples(st.integers(1, 2), st.integers(1, 4), st.integers(0, 2)), min_size=2, max_size=8))
@settings(max_examples=20)
def test_remedies_of_random_devices_start_their_workload_and_smaller_ones_do_not(
    asked: list[tuple[int, int, int]],
) -> None:
    def build() -> World:
        builder = Builder().queue("q", {"default": {GPU: 100, MEMORY: 100_000}}, preemption=preemption("LowerPriority"))
        builder.queue("other", {"default": {GPU: 4, MEMORY: 20_000}})
        builder.world.set_node(gpu_node("n1", 2))
        builder.world.set_node(replace(gpu_node("n2", 1), unschedulable=True))
        for number, (count, memory, priority) in enumerate(asked):
            builder.pending(f"w{number}", "q", [gpus(count, 4096 * memory)], priority=priority, at=float(number))
        settled(builder.world, NOW)
        return builder.world

    world = build()
    for number in range(len(asked)):
        key = f"{NAMESPACE}/w{number}"
        check(build, key, find_remedies(world, key, NOW, {"high": 5}))


def busy() -> Builder:
    """Four cores, three of them used; the last workload waits for two."""
    builder = Builder().queue("research", {"default": 4}, "company")
    return (
        builder.running("train", "research", 2).running("small", "research", 1).pending("wait", "research", 2, at=9.0)
    )


def test_the_remedies_of_a_workload_that_lacks_quota() -> None:
    found = find_remedies(busy().world, f"{NAMESPACE}/wait", NOW)
    said = [(each.kind, each.field_name, each.subject, dict(each.after), each.workloads) for each in found.remedies]
    assert said == [
        (RemedyKind.LESS, "requests", "main", {"cpu": 1000}, ()),
        (RemedyKind.QUOTA, "nominalQuota", "ClusterQueue research: default", {"cpu": 5000}, ()),
        (RemedyKind.QUOTA, "nominalQuota", "Cohort company: default", {"cpu": 1000}, ()),
        (RemedyKind.OTHERS_END, "workloads", "", {}, (f"{NAMESPACE}/small",)),
    ]
    assert found.complete


def test_another_queue_and_a_higher_class_are_remedies_and_say_whom_they_displace() -> None:
    builder = busy().queue("spare", {"default": 2})
    builder.queue("research", {"default": 4}, "company", preemption=preemption("LowerPriority"))
    found = find_remedies(builder.world, f"{NAMESPACE}/wait", NOW, {"low": -1, "high": 10, "higher": 20})
    elsewhere = {each.field_name: each for each in found.remedies if each.kind is RemedyKind.ELSEWHERE}
    assert elsewhere["queueName"].after == {"": "spare"}
    assert elsewhere["queueName"].effects.preempted == {}
    assert elsewhere["priorityClass"].after == {"": "high"}
    assert elsewhere["priorityClass"].effects.preempted == {f"{NAMESPACE}/small": "research"}


def test_a_remedy_says_who_waits_longer() -> None:
    builder = Builder().queue("research", {"default": 4}).pending("large", "research", 5)
    builder.pending("next", "research", 4, at=1.0)
    found = find_remedies(builder.world, f"{NAMESPACE}/large", NOW)
    less = next(each for each in found.remedies if each.kind is RemedyKind.LESS)
    assert less.after == {"cpu": 4000}
    assert less.effects.waits == {f"{NAMESPACE}/next": "research"}


def test_nothing_would_is_an_answer() -> None:
    builder = Builder().queue("q", {"default": {"cpu": 4}})
    builder.pending("odd", "q", {"example.com/fpga": 1})
    found = find_remedies(builder.world, f"{NAMESPACE}/odd", NOW)
    assert found == Remedies(WaitState.CANNOT_START, trials=found.trials)
    assert found.complete


def test_a_workload_that_starts_anyway_needs_no_remedy() -> None:
    builder = Builder().queue("q", {"default": 4}).pending("fits", "q", 1)
    assert find_remedies(builder.world, f"{NAMESPACE}/fits", NOW).starts_now


def test_an_answer_that_was_cut_short_says_so() -> None:
    found = find_remedies(busy().world, f"{NAMESPACE}/wait", NOW, go_on=lambda: False)
    assert not found.complete


def test_a_node_back_in_service_and_a_freed_device_are_remedies() -> None:
    builder = Builder().queue("q", {"default": {GPU: 10, MEMORY: 100_000}})
    builder.world.set_node(replace(gpu_node("n1"), unschedulable=True))
    builder.pending("job", "q", [gpus(1, 8192)])
    settled(builder.world, NOW)
    found = find_remedies(builder.world, f"{NAMESPACE}/job", NOW)
    assert [(each.kind, each.subject) for each in found.remedies] == [(RemedyKind.BACK_IN_SERVICE, "n1")]


def test_moves_that_free_a_device_are_tried_with_cycles() -> None:
    builder = Builder().queue("q", {"default": {GPU: 10, MEMORY: 100_000}})
    for name in ("n1", "n2"):
        builder.world.set_node(gpu_node(name))
        builder.pending(f"on-{name}", "q", [_on(name)])
    settled(builder.world, NOW)
    builder.pending("large", "q", [gpus(1, 12_000)], at=5.0)
    settled(builder.world, NOW)
    found = find_remedies(builder.world, f"{NAMESPACE}/large", NOW)
    (moved,) = (each for each in found.remedies if each.kind is RemedyKind.MOVES)
    assert moved.workloads in ((f"{NAMESPACE}/on-n1",), (f"{NAMESPACE}/on-n2",))
    assert starts_for_real(builder.world, moved.changes, f"{NAMESPACE}/large")


def _on(name: str) -> PodSet:
    """A small slice; spread puts the second one onto the other node."""
    pod_set = gpus(1, 6000)
    manifest = {**pod_set.template.manifest, "metadata": {"annotations": {"hami.io/node-scheduler-policy": "spread"}}}
    return replace(pod_set, template=PodTemplate.from_manifest(manifest))


@pytest.mark.parametrize("key", ["team/none"])
def test_an_unknown_workload_is_refused(key: str) -> None:
    with pytest.raises(KeyError):
        find_remedies(Builder().world, key, NOW)
