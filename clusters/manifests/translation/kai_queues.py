"""Queues of the KAI scheduler (scheduling.run.ai) as Cohorts and ClusterQueues (pure).

A queue with children is a Cohort, any other one a ClusterQueue. All are below the Cohort `root`, which divides quota
first, and the rest by priority and weight (`fair-share`). Amounts: thousandths of a cpu, megabytes, GPUs; -1 is
unlimited.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from clusters.manifests.translation.quota_tree import ROOT, Amounts, Branch, add_branches
from clusters.manifests.translation.translated import Translation
from scheduling.model.quantity import parse_amount
from scheduling.model.times import duration_seconds

KAI_QUEUE: Final = ("scheduling.run.ai/v2", "Queue")
_POLICY: Final = "fair-share"
_NAMES: Final = {"cpu": "cpu", "memory": "memory", "gpu": "nvidia.com/gpu"}
_UNITS: Final = {"cpu": "m", "memory": "M", "gpu": ""}
_QUEUE_PRIORITY: Final = "kueueweb.io/queue-priority"
_MINIMUM_RUN: Final = "kueueweb.io/minimum-run-seconds"
_UNLIMITED: Final = -1


def translate_kai_queues(queues: Sequence[Mapping[str, Any]]) -> Translation:
    """Return one translation of all queues of a request."""
    made = Translation(" ".join(KAI_QUEUE))
    branches = {str(queue["metadata"]["name"]): _branch(made, queue) for queue in queues}
    if len(branches) < len(queues):
        made.refuse("metadata.name", None, "Duplicate value: two queues have the same name", "Remove one.")
    top: list[Branch] = []
    for branch in branches.values():
        parent = branches.get(branch.parent)
        if branch.parent == ROOT or parent is None:
            if parent is None and branch.parent != ROOT:
                made.refuse(f"{branch.path}, spec.parentQueue", branch.parent, "Not found", "Add the queue.")
            top.append(branch)
        else:
            parent.children.append(branch)
    if _has_circle(branches):
        made.refuse("spec.parentQueue", None, "the parents form a circle", "Name another parent.")
    for branch in branches.values():
        if branch.children and branch.annotations.pop(_QUEUE_PRIORITY, ""):
            made.lose(f"{branch.path}, spec.priority", "not supported on a Cohort: set it on the queues below")
    if not made.refusals:
        add_branches(made, top, [*_NAMES.values()], _POLICY)
    return made


def _has_circle(branches: Mapping[str, Branch]) -> bool:
    for name in branches:
        seen, at = {name}, branches[name].parent
        while at in branches:
            if at in seen:
                return True
            seen.add(at)
            at = branches[at].parent
    return False


def _branch(made: Translation, queue: Mapping[str, Any]) -> Branch:
    name, spec = str(queue["metadata"]["name"]), queue.get("spec") or {}
    branch = Branch(name, f"Queue {name}", str(spec.get("parentQueue") or ROOT))
    weights: dict[str, float] = {}
    for resource in _NAMES:
        stated = (spec.get("resources") or {}).get(resource) or {}
        weights[resource] = float(stated.get("overQuotaWeight") or 0)
        _read_amounts(made, branch, resource, stated)
    weight = weights["gpu"] or max(weights.values())
    branch.spec["fairSharing"] = {"weight": f"{weight:g}"}
    made.keep(f"{branch.path}, spec.resources", "nominalQuota, borrowingLimit and fairSharing.weight")
    if len(set(weights.values())) > 1:
        made.lose(f"{branch.path}, spec.resources[].overQuotaWeight", f"one weight for all resources: {weight:g}")
    _read_rest(made, branch, spec)
    return branch


def _read_amounts(made: Translation, branch: Branch, resource: str, stated: Mapping[str, Any]) -> None:
    path, name = f"{branch.path}, spec.resources.{resource}", _NAMES[resource]
    quota, limit = float(stated.get("quota") or 0), float(stated.get("limit") or 0)
    if quota == _UNLIMITED:
        made.lose(f"{path}.quota", "unlimited: the queue borrows the amounts that are free, and none is promised to it")
        quota = 0
    for field, value, target in (("quota", quota, branch.quota), ("limit", limit, branch.limit)):
        if field == "limit" and value == _UNLIMITED:
            continue
        if value < 0 or value % 1:
            rule = "must be a whole number, or -1" if value >= 0 else "must be at least -1"
            made.refuse(f"{path}.{field}", value, rule, "Round it.")
            continue
        _put(target, name, f"{int(value)}{_UNITS[resource]}")


def _put(target: Amounts, name: str, text: str) -> None:
    target[name] = parse_amount(name, text)


def _read_rest(made: Translation, branch: Branch, spec: Mapping[str, Any]) -> None:
    if spec.get("priority") is not None:
        branch.annotations[_QUEUE_PRIORITY] = str(int(spec["priority"]))
    runtime = spec.get("preemptMinRuntime") or spec.get("reclaimMinRuntime")
    if runtime:
        try:
            branch.annotations[_MINIMUM_RUN] = str(int(duration_seconds(str(runtime))))
        except ValueError as mistake:
            made.refuse(f"{branch.path}, spec.preemptMinRuntime", runtime, str(mistake))
        made.keep(f"{branch.path}, spec.preemptMinRuntime", _MINIMUM_RUN)
    if spec.get("reclaimMinRuntime") not in (None, runtime):
        made.lose(f"{branch.path}, spec.reclaimMinRuntime", f"{_MINIMUM_RUN} holds for preemption and reclaim alike")
    for name in sorted(
        spec.keys() - {"resources", "parentQueue", "priority", "preemptMinRuntime", "reclaimMinRuntime"}
    ):
        made.lose(f"{branch.path}, spec.{name}", "no counterpart")
