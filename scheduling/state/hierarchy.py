"""The hierarchy of cohorts, ClusterQueues and flavors: which ClusterQueues are active, and the quota tree."""

from __future__ import annotations

from collections.abc import Iterator

from scheduling.model.cluster_queue import ClusterQueue
from scheduling.model.cohort import PreemptionProtection, PriorityWeights
from scheduling.model.vocabulary import ClusterQueueReason, StopPolicy
from scheduling.state.cluster_queue import ClusterQueueState, LimitedNode
from scheduling.state.second_pass import MULTIKUEUE, PROVISIONING
from scheduling.state.state import State

Root = tuple[str, str]


class Hierarchy:
    """Maintains the data that is derived from configuration objects. It collects changes, and `rebuild` applies them
    before any number is read.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._dirty = True
        self._changed_queues: set[str] = set()
        self._changed_cohorts: set[str] = set()
        self._roots: dict[str, Root] = {}

    def queue_changed(self, name: str) -> None:
        """Note that a ClusterQueue was added or changed. Its old and its new cohort tree are both rebuilt."""
        self._dirty = True
        self._changed_queues.add(name)

    def cohort_changed(self, name: str) -> None:
        """Note that a Cohort was added, changed or deleted."""
        self._dirty = True
        self._changed_cohorts.add(name)

    def references_changed(self) -> None:
        """Note that flavors, topologies or admission checks were added, changed or deleted: ClusterQueues may become
        active or inactive."""
        self._dirty = True
        self._state.matcher.clear()
        self._changed_queues.update(self._state.cluster_queues)

    def snapshot(self) -> tuple[bool, set[str], set[str], dict[str, Root]]:
        """Return a copy of the collected changes."""
        return self._dirty, set(self._changed_queues), set(self._changed_cohorts), dict(self._roots)

    def restore(self, values: tuple[bool, set[str], set[str], dict[str, Root]]) -> None:
        """Go back to a snapshot."""
        self._dirty, self._changed_queues, self._changed_cohorts, self._roots = values

    def rebuild(self) -> None:
        if not self._dirty:
            return
        self._dirty = False
        state = self._state
        state.entitlements.release()
        for name in self._changed_queues & state.cluster_queues.keys():
            cq = state.cluster_queues[name]
            cq.set_spec(cq.spec, state.flavors)
        state.tree.find_cycles(state.cohorts)
        state.tree.rebuild(
            state.cohorts, [(cq.node, cq.spec.cohort_name, self._is_active(cq)) for cq in state.cluster_queues.values()]
        )
        state.members = {}
        for cq in state.cluster_queues.values():
            state.members.setdefault(id(cq.node.root), []).append(cq)
            cq.protections = self._protections(cq)
            cq.weights, cq.ordered_across = self._weights(cq)
            self._limit_users(cq)
        state.multifactor.forget()
        state.user_usage.forget()
        state.entitlements.rebuilt()
        self._touch_changed_trees()

    def _touch_changed_trees(self) -> None:
        """Give ClusterQueues of every changed tree (before and after the change) a new generation and wake their
        inadmissible workloads.
        """
        state = self._state
        before, self._roots = self._roots, {}
        for name, cq in state.cluster_queues.items():
            self._roots[f"queue {name}"] = (type(cq.node.root).__name__, cq.node.root.name)
        for name, cohort in state.tree.cohorts.items():
            self._roots[f"cohort {name}"] = (type(cohort.root).__name__, cohort.root.name)
        keys = {f"queue {name}" for name in self._changed_queues}
        keys |= {f"cohort {name}" for name in self._changed_cohorts}
        changed = {roots[key] for roots in (before, self._roots) for key in keys if key in roots}
        reached = [name for name in state.cluster_queues if self._roots[f"queue {name}"] in changed]
        for name in reached:
            state.cluster_queues[name].generation += 1
        state.dirty_queues.update(reached)
        state.waking.clear_pauses(reached)
        self._changed_queues.clear()
        self._changed_cohorts.clear()

    def _protections(self, cq: ClusterQueueState) -> tuple[PreemptionProtection, ...]:
        specs = [cq.spec.protection]
        specs += [self._state.cohorts[n.name].protection for n in cq.node.ancestors() if n.name in self._state.cohorts]
        return tuple(p for p in specs if p.minimum_run_seconds > 0 or p.cool_down_seconds > 0)

    def _limit_users(self, cq: ClusterQueueState) -> None:
        """Find the limits by user. When the first limit appears or the last one is removed, read the waiting workloads
        again: only where users are limited do those of different users differ, and only with backfill those of
        different time limits.
        """
        stated = [(f"ClusterQueue {cq.name}", cq.spec.user_limits)]
        above = (self._state.cohorts.get(node.name) for node in cq.node.ancestors())
        stated += [(f"Cohort {cohort.name}", cohort.user_limits) for cohort in above if cohort is not None]
        before, cq.user_limits = (
            cq.user_limits,
            tuple(LimitedNode.of(name, limits) for name, limits in stated if limits),
        )
        backfilled, cq.backfilled = cq.backfilled, cq.spec.backfill is not None
        if bool(before) != bool(cq.user_limits) or backfilled != cq.backfilled:
            for info in cq.queue.in_order():
                self._state.outdated.setdefault(info.key, False)

    def _weights(self, cq: ClusterQueueState) -> tuple[PriorityWeights | None, bool]:
        """Return the nearest weights, its own or a cohort's above it, and whether they are the root's."""
        root = cq.node.root.name
        if cq.spec.priority_weights is not None:
            return cq.spec.priority_weights, False
        for node in cq.node.ancestors():
            cohort = self._state.cohorts.get(node.name)
            if cohort is not None and cohort.priority_weights is not None:
                return cohort.priority_weights, node.name == root
        return None, False

    def _is_active(self, cq: ClusterQueueState) -> bool:
        reason, message = self._inactive_reason(cq.spec)
        was_active, cq.active = cq.active, reason is ClusterQueueReason.READY
        cq.inactive_reason, cq.inactive_message = reason, message
        if cq.active and not was_active:
            self._state.dirty_queues.add(cq.name)
        if cq.active and cq.queue.active_count:
            self._state.ready[cq.name] = cq
        return cq.active

    def _inactive_reason(self, spec: ClusterQueue) -> tuple[ClusterQueueReason, str]:
        """Return the first reason that applies, and a message with every problem."""
        problems = list(self._problems(spec))
        if not problems:
            return ClusterQueueReason.READY, "Can admit new workloads"
        return problems[0][0], "Can't admit new workloads: " + ", ".join(text for _, text in problems)

    def problems(self) -> dict[str, str]:
        """Return the problems of each inactive ClusterQueue as a message. A stop policy is not a problem."""
        found = {}
        for name, cq in self._state.cluster_queues.items():
            if not cq.active:
                texts = [text for reason, text in self._problems(cq.spec) if reason is not ClusterQueueReason.STOPPED]
                if texts:
                    found[name] = ", ".join(texts)
        return found

    def _problems(self, spec: ClusterQueue) -> list[tuple[ClusterQueueReason, str]]:
        state = self._state
        found: list[tuple[ClusterQueueReason, str]] = []
        if spec.terminating:
            found.append((ClusterQueueReason.TERMINATING, "it is being deleted"))
        if spec.stop_policy is not StopPolicy.NONE:
            found.append((ClusterQueueReason.STOPPED, f"it is stopped ({spec.stop_policy})"))
        flavors = [flavor.name for group in spec.resource_groups for flavor in group.flavors]
        missing = [name for name in flavors if name not in state.flavors]
        if missing:
            found.append((ClusterQueueReason.FLAVOR_NOT_FOUND, f"flavors not found: {', '.join(missing)}"))
        found += self._check_problems(spec)
        topologies = [t for name in flavors if name in state.flavors and (t := state.flavors[name].topology_name)]
        missing = [name for name in topologies if name not in state.topologies]
        if missing:
            found.append((ClusterQueueReason.TOPOLOGY_NOT_FOUND, f"topologies not found: {', '.join(missing)}"))
        if spec.cohort_name in state.tree.cyclic:
            found.append((ClusterQueueReason.COHORT_CYCLE, f"cohort {spec.cohort_name} is in or below a cycle"))
        return found

    def _check_problems(self, spec: ClusterQueue) -> Iterator[tuple[ClusterQueueReason, str]]:
        """Yield the problems of its admission checks. One MultiKueue check chooses the cluster, for all flavors and
        alone."""
        known = self._state.checks
        missing = [rule.name for rule in spec.admission_checks if rule.name not in known]
        if missing:
            yield ClusterQueueReason.ADMISSION_CHECK_NOT_FOUND, f"checks not found: {', '.join(missing)}"
        rules = [rule for rule in spec.admission_checks if rule.name in known]
        inactive = [rule.name for rule in rules if not known[rule.name].active]
        if inactive:
            yield ClusterQueueReason.ADMISSION_CHECK_INACTIVE, f"inactive checks: {', '.join(inactive)}"
        of_multikueue = [rule for rule in rules if known[rule.name].controller_name == MULTIKUEUE]
        names = ", ".join(rule.name for rule in of_multikueue)
        if len(of_multikueue) > 1:
            text = f"more than one check of MultiKueue: {names}"
            yield ClusterQueueReason.MULTIPLE_MULTIKUEUE_ADMISSION_CHECKS, text
        per_flavor = [rule.name for rule in of_multikueue if rule.on_flavors]
        if per_flavor:
            text = f"checks of MultiKueue for some flavors only: {', '.join(per_flavor)}"
            yield ClusterQueueReason.MULTIKUEUE_ADMISSION_CHECK_APPLIED_PER_FLAVOR, text
        provisioning = [rule.name for rule in rules if known[rule.name].controller_name == PROVISIONING]
        if of_multikueue and provisioning:
            text = f"checks of MultiKueue beside those that provision nodes: {names}, {', '.join(provisioning)}"
            yield ClusterQueueReason.MULTIKUEUE_WITH_PROVISIONING_REQUEST, text
