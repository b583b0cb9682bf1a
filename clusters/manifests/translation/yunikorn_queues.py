"""YuniKorn's queues.yaml as Cohorts and ClusterQueues (pure).

A queue with children is a Cohort, a leaf a ClusterQueue. Their names are the paths below `root`. The guaranteed
resources of a queue include those of its children.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from clusters.manifests.translation.quota_tree import ROOT, Amounts, Branch, add_branches, object_name
from clusters.manifests.translation.translated import JsonObject, Translation
from scheduling.model.quantity import InvalidQuantity, parse_amount

SOURCE: Final = "YuniKorn queues.yaml"
_NAMES: Final = {"vcore": "cpu"}
_ALWAYS: Final = ("cpu", "memory")
_USER_LIMITS: Final = "kueueweb.io/user-limits"
_NEVER_RECLAIM: Final = "kueueweb.io/never-reclaim"
_LOST_OF_PARTITION: Final = {
    "placementrules": "a job names its LocalQueue; a LocalQueue `default` takes the jobs that name none",
    "nodesortpolicy": "the placement policy of the Cluster chooses nodes",
    "statedumpfilepath": "not needed",
    "limits": "write them at a queue",
}
_LOST_OF_QUEUE: Final = {
    "submitacl": "bind the role submitter in the namespaces of the queue (RoleBinding)",
    "adminacl": "bind the role admin in the namespaces of the queue (RoleBinding)",
    "maxapplications": "the number of workloads of a queue is not limited: limit it by user",
    "childtemplate": "queues are not created on demand",
}
_LOST_OF_PROPERTIES: Final = {
    "application.sort.policy": "workloads are ordered by priority and time",
    "application.sort.priority": "workloads are ordered by priority and time",
    "priority.offset": "set the priority in the WorkloadPriorityClasses",
    "priority.policy": "priorities count in the whole tree",
    "preemption.delay": "preemption is not delayed",
    "quota.preemption.delay": "running workloads keep their quota when it is lowered",
}


def is_yunikorn(content: Mapping[str, Any]) -> bool:
    """Return whether a document is a queues.yaml."""
    return "apiVersion" not in content and isinstance(content.get("partitions"), list)


def translate_yunikorn(content: Mapping[str, Any]) -> Translation:
    """Return the translation of a queues.yaml; it refuses more than one partition."""
    made = Translation(SOURCE)
    partitions = content["partitions"]
    if len(partitions) != 1 or not isinstance(partitions[0], Mapping):
        rule = "must have one partition: each is a cluster"
        made.refuse("partitions", len(partitions), rule, "Convert each partition alone.")
        return made
    (partition,) = partitions
    for name in _LOST_OF_PARTITION.keys() & partition.keys():
        made.lose(f"partitions[0].{name}", _LOST_OF_PARTITION[name])
    preempts = (partition.get("preemption") or {}).get("enabled", True)
    top = partition.get("queues") or []
    inside = top[0].get("queues") or [] if len(top) == 1 and str(top[0].get("name", "")).lower() == ROOT else top
    if inside is not top:
        _report(made, top[0], "partitions[0].queues[0]")
    branches = [_branch(made, queue, f"root.{queue.get('name')}", "", preempts=preempts) for queue in inside]
    if not branches:
        made.refuse("partitions[0].queues", None, "Required value: a queue below root", "Add one.")
    if not made.refusals:
        add_branches(made, branches, _resources(branches), "")
        made.lose("queues", "no LocalQueues: create one in each namespace that uses a queue")
    return made


def _branch(made: Translation, queue: Mapping[str, Any], path: str, parent: str, *, preempts: bool) -> Branch:
    name = object_name(f"{parent}.{queue.get('name')}" if parent else str(queue.get("name")))
    _report(made, queue, path)
    resources = queue.get("resources") or {}
    branch = Branch(name, path, parent or ROOT)
    branch.quota = _amounts(made, f"{path}.resources.guaranteed", resources.get("guaranteed"))
    branch.limit = _amounts(made, f"{path}.resources.max", resources.get("max"))
    if limits := [*_limits(made, queue.get("limits") or (), path)]:
        branch.annotations[_USER_LIMITS] = json.dumps(limits)
    disabled = (queue.get("properties") or {}).get("preemption.policy") == "disabled"
    children = queue.get("queues") or ()
    if disabled and not children:
        branch.annotations[_NEVER_RECLAIM] = "true"
        made.keep(f"{path}.properties[preemption.policy]", _NEVER_RECLAIM)
    if not preempts and not children:
        branch.spec["preemption"] = {"reclaimWithinCohort": "Never", "withinClusterQueue": "Never"}
    branch.children = [
        _branch(made, child, f"{path}.{child.get('name')}", name, preempts=preempts) for child in children
    ]
    short = {key: amount for key, amount in branch.quota.items() if amount < branch.below().get(key, 0)}
    for key in short:
        rule = f"{key}: must be at least the sum of its children's"
        made.refuse(f"{path}.resources.guaranteed", short[key], rule, "Raise it, or lower theirs.")
    return branch


def _report(made: Translation, queue: Mapping[str, Any], path: str) -> None:
    for name in ("guaranteed", "max"):
        if (queue.get("resources") or {}).get(name):
            kept = "nominalQuota" if name == "guaranteed" else "nominalQuota plus borrowingLimit"
            made.keep(f"{path}.resources.{name}", kept)
    for name in _LOST_OF_QUEUE.keys() & queue.keys():
        made.lose(f"{path}.{name}", _LOST_OF_QUEUE[name])
    for name, value in (queue.get("properties") or {}).items():
        if name == "preemption.policy" and value in ("default", "disabled"):
            if value == "disabled" and queue.get("queues"):
                made.lose(f"{path}.properties[{name}]", "set it on the leaves below")
            continue
        text = _LOST_OF_PROPERTIES.get(name, "no queue below is fenced" if name == "preemption.policy" else "unknown")
        made.lose(f"{path}.properties[{name}]", text)


def _limits(made: Translation, limits: Any, path: str) -> Iterator[JsonObject]:
    for number, limit in enumerate(limits):
        place = f"{path}.limits[{number}]"
        found: JsonObject = {"users": [str(name) for name in limit.get("users") or ()]}
        if groups := limit.get("groups"):
            found["groups"] = [str(name) for name in groups]
        if limit.get("maxapplications"):
            found["workloads"] = int(limit["maxapplications"])
        if resources := limit.get("maxresources"):
            _amounts(made, f"{place}.maxresources", resources)
            found["resources"] = {_NAMES.get(name, name): str(text) for name, text in resources.items()}
        made.keep(place, _USER_LIMITS)
        yield found


def _amounts(made: Translation, path: str, texts: Mapping[str, Any] | None) -> Amounts:
    found: Amounts = {}
    for name, text in (texts or {}).items():
        ours = _NAMES.get(name, name)
        if ours == "pods":
            made.lose(f"{path}[pods]", "the number of pods is not a quota")
            continue
        try:
            found[ours] = parse_amount(ours, text)
        except InvalidQuantity as mistake:
            made.refuse(f"{path}[{name}]", text, str(mistake))
    return found


def _resources(branches: list[Branch]) -> list[str]:
    named: set[str] = set()
    left = [*branches]
    while left:
        branch = left.pop()
        named |= {*branch.quota, *branch.limit}
        left += branch.children
    return [*_ALWAYS, *sorted(named - {*_ALWAYS})]
