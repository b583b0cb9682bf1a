"""Queues of Volcano (scheduling.volcano.sh) as ClusterQueues and Cohorts (pure).

A queue with children is a Cohort, any other one a ClusterQueue. All are below the Cohort `root`, which divides the
capacity of the nodes by the sharing policy with the name of Volcano's plugin: `capacity` if any queue has `deserved`,
otherwise `proportion`. docs/scheduling.md lists our field for each claim.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from clusters.manifests.translation.quota_tree import (
    API_VERSION,
    POLICY,
    ROOT,
    Amounts,
    flavor,
    quota_group,
    root_cohort,
)
from clusters.manifests.translation.translated import JsonObject, Translation, metadata_of
from clusters.manifests.translation.volcano_field_types import queue_type_mistakes, without_nulls
from scheduling.manifest import MistakeReason
from scheduling.model.quantity import format_amount, parse_amount

_ALWAYS: Final = ("cpu", "memory", "nvidia.com/gpu")
"""Resources that Volcano's queues share without naming them."""
_NEVER_RECLAIM: Final = "kueueweb.io/never-reclaim"
_QUEUE_PRIORITY: Final = "kueueweb.io/queue-priority"
_FIELDS: Final = frozenset(
    {
        "weight", "capability", "guarantee", "deserved", "reclaimable", "parent", "priority", "type", "affinity",
        "extendClusters", "dequeueStrategy",
    }
)  # fmt: skip
_LOST: Final = {
    "affinity": "no node groups: give the queue a ResourceFlavor whose nodeLabels choose the nodes",
    "extendClusters": "no other clusters: use MultiKueue",
    "type": "has no effect in Volcano's scheduler either",
}

_KEPT: Final = {
    "weight": "fairSharing.weight",
    "guarantee": "nominalQuota less lendingLimit",
    "deserved": "nominalQuota",
    "capability": "nominalQuota plus borrowingLimit",
    "parent": "the Cohort of this name",
    "dequeueStrategy": "queueingStrategy; Volcano's scheduler does not read it",
}
_SUMMED: Final = ("nominal", "guarantee")
_MAX_RESOURCES: Final = 64
"""Resources of a group of quotas, as in Kueue."""


def translate_queues(queues: Sequence[Mapping[str, Any]]) -> list[Translation]:
    """Return a translation for each queue, in their order. The first has the Cohort `root` and the flavor as shared
    manifests. If a queue has a field of another type, only the refusals are returned."""
    queues = without_nulls([*queues])
    refused = [_refused(queue) for queue in queues]
    if not any(made.refusals for made in refused):
        _refuse_together(queues, refused)
    if any(made.refusals for made in refused):
        return refused
    policy = "capacity" if any((_spec(queue).get("deserved") or {}) for queue in queues) else "proportion"
    tree = _Tree(queues, policy)
    resources = _resources(queues)
    done = [_Queue(queue, tree, resources).translation() for queue in queues]
    if done and all(_name(queue) != ROOT for queue in queues):
        done[0].shared += [flavor(), root_cohort(policy, resources, tree.below(ROOT, "nominal"))]
    return done


def _refused(queue: Mapping[str, Any]) -> Translation:
    made = _translation_of(queue)
    made.refuse_all(queue_type_mistakes(queue))
    return made


def _translation_of(queue: Mapping[str, Any]) -> Translation:
    return Translation(f"{queue['apiVersion']} Queue")


def _refuse_together(queues: Sequence[Mapping[str, Any]], made: Sequence[Translation]) -> None:
    """Refuse the queues that cannot be in one request."""
    names: set[str] = set()
    for queue, each in zip(queues, made, strict=True):
        if _name(queue) in names:
            each.refuse("metadata.name", _name(queue), "Duplicate value", "Remove one.", MistakeReason.DUPLICATE)
        names.add(_name(queue))
    resources = _resources(queues)
    if len(resources) > _MAX_RESOURCES:
        rule = f"the queues of the request name {len(resources)} resources: at most {_MAX_RESOURCES} are covered"
        made[0].refuse("spec", None, rule, "Name fewer.", MistakeReason.TOO_MANY)


def _name(queue: Mapping[str, Any]) -> str:
    return str(queue["metadata"]["name"])


def _parent(queue: Mapping[str, Any]) -> str:
    return str(_spec(queue).get("parent") or ROOT)


class _Tree:
    """The queues of a request by their parents. In Volcano, a quota includes those of the queues below; ours does not,
    so a Cohort gets only the excess."""

    def __init__(self, queues: Sequence[Mapping[str, Any]], policy: str) -> None:
        self.policy = policy
        self._claims = {_name(queue): _claims(queue) for queue in queues}
        for claims in self._claims.values():
            claims["nominal"] = claims["deserved" if policy == "capacity" else "guarantee"]
        parents = {_name(queue): _parent(queue) for queue in queues if _name(queue) != ROOT}
        self._children: dict[str, list[str]] = defaultdict(list)
        for name, parent in parents.items():
            self._children[parent].append(name)
        ordered = [ROOT, *sorted({parent for parent in parents.values() if parent not in parents} - {ROOT})]
        for name in ordered:
            ordered += self._children.get(name, ())
        self._reached = {*ordered}
        self._below: dict[str, dict[str, Amounts]] = {}
        for name in reversed(ordered):
            children = self._children.get(name, ())
            self._below[name] = {claim: _sum(self.whole(child, claim) for child in children) for claim in _SUMMED}

    def is_parent(self, name: str) -> bool:
        return name == ROOT or name in self._children

    def is_cyclic(self, name: str) -> bool:
        """Return whether the parents of a queue form a cycle."""
        return name != ROOT and name not in self._reached

    def own(self, name: str, claim: str) -> Amounts:
        """Return the part of a queue's claim that exceeds the claims of the queues below it."""
        below = self.below(name, claim)
        return {key: max(0, amount - below.get(key, 0)) for key, amount in self._claims[name][claim].items()}

    def whole(self, name: str, claim: str) -> Amounts:
        """Return, by resource, the larger of a queue's claim and the sum of the claims below it."""
        below, claimed = self.below(name, claim), self._claims[name][claim]
        return {key: max(claimed.get(key, 0), below.get(key, 0)) for key in {**claimed, **below}}

    def below(self, name: str, claim: str) -> Amounts:
        """Return the claims of the queues below one together."""
        return self._below.get(name, {}).get(claim, {})


def _spec(queue: Mapping[str, Any]) -> Mapping[str, Any]:
    spec: Mapping[str, Any] = queue.get("spec") or {}
    return spec


def _resources(queues: Iterable[Mapping[str, Any]]) -> list[str]:
    named = {name for queue in queues for claim in _claims(queue).values() for name in claim if name != "pods"}
    return [*_ALWAYS, *sorted(named - {*_ALWAYS})]


def _claims(queue: Mapping[str, Any]) -> dict[str, Amounts]:
    spec = _spec(queue)
    guarantee = (spec.get("guarantee") or {}).get("resource") or {}
    texts = {"capability": spec.get("capability"), "deserved": spec.get("deserved"), "guarantee": guarantee}
    return {
        claim: {name: parse_amount(name, text) for name, text in (amounts or {}).items()}
        for claim, amounts in texts.items()
    }


def _sum(all_amounts: Iterable[Amounts]) -> Amounts:
    total: Amounts = {}
    for amounts in all_amounts:
        for name, amount in amounts.items():
            total[name] = total.get(name, 0) + amount
    return total


class _Queue:
    """One queue on its way to a ClusterQueue, or to a Cohort."""

    def __init__(self, queue: Mapping[str, Any], tree: _Tree, resources: Sequence[str]) -> None:
        self._queue, self._spec, self._name = queue, _spec(queue), _name(queue)
        self._tree, self._resources = tree, resources
        self._is_parent = tree.is_parent(self._name)
        self._made = _translation_of(queue)

    def translation(self) -> Translation:
        made = self._made
        metadata = {**metadata_of(self._queue), "name": self._name}
        metadata.pop("namespace", None)
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **self._annotations()}
        self._check()
        self._report()
        kind = "Cohort" if self._is_parent else "ClusterQueue"
        manifest = {
            "apiVersion": API_VERSION,
            "kind": kind,
            "metadata": {key: value for key, value in metadata.items() if value},
            "spec": self._cohort_spec() if self._is_parent else self._cluster_queue_spec(),
        }
        made.manifests.append(made.annotated(manifest))
        return made

    def _annotations(self) -> dict[str, str]:
        annotations = {}
        if self._spec.get("reclaimable") is False and not self._is_parent:
            annotations[_NEVER_RECLAIM] = "true"
        if self._spec.get("priority") and not self._is_parent:
            annotations[_QUEUE_PRIORITY] = str(int(self._spec["priority"]))
        if self._name == ROOT:
            annotations[POLICY] = self._tree.policy
        return annotations

    def _cluster_queue_spec(self) -> JsonObject:
        spec: JsonObject = {"cohortName": _parent(self._queue), "namespaceSelector": {}}
        if self._spec.get("dequeueStrategy") == "fifo":
            spec["queueingStrategy"] = "StrictFIFO"
        return {
            **spec,
            **self._weight(),
            "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
            "resourceGroups": [quota_group(self._resources, self._cells())],
        }

    def _cohort_spec(self) -> JsonObject:
        spec: JsonObject = {} if self._name == ROOT else {"parentName": _parent(self._queue)}
        return {**spec, **self._weight(), "resourceGroups": [quota_group(self._resources, self._cells())]}

    def _weight(self) -> JsonObject:
        weight = int(self._spec.get("weight") or 1)
        return {} if weight == 1 else {"fairSharing": {"weight": str(weight)}}

    def _cells(self) -> list[JsonObject]:
        if self._tree.is_cyclic(self._name):
            return []
        return [self._cell(name) for name in self._resources]

    def _cell(self, resource: str) -> JsonObject:
        tree, claims = self._tree, _claims(self._queue)
        nominal = tree.own(self._name, "nominal").get(resource, 0)
        cell: JsonObject = {"name": resource, "nominalQuota": format_amount(resource, nominal)}
        if resource in claims["guarantee"]:
            kept = tree.own(self._name, "guarantee")[resource]
            cell["lendingLimit"] = format_amount(resource, max(0, nominal - kept))
        if claims["capability"].get(resource) and self._name != ROOT:
            whole = tree.whole(self._name, "nominal").get(resource, 0)
            cell["borrowingLimit"] = format_amount(resource, max(0, claims["capability"][resource] - whole))
        return cell

    def _check(self) -> None:
        claims, made = _claims(self._queue), self._made
        for name in sorted(self._spec.keys() - _FIELDS):
            made.refuse(f"spec.{name}", self._spec[name], "unknown field", reason=MistakeReason.UNKNOWN_FIELD)
        if self._tree.is_cyclic(self._name):
            made.refuse("spec.parent", _parent(self._queue), "the parents form a circle", "Name another parent.")
        order = (("guarantee", "deserved"), ("guarantee", "capability"), ("deserved", "capability"))
        for low, high in order:
            path = "spec.guarantee.resource" if low == "guarantee" else "spec.deserved"
            for name, amount in claims[low].items():
                limit = claims[high].get(name)
                if limit is not None and amount > limit:
                    rule = f"must be at most {high} ({format_amount(name, limit)})"
                    made.refuse(f"{path}[{name}]", format_amount(name, amount), rule, f"Lower it, or raise {high}.")

    def _report(self) -> None:
        spec, made = self._spec, self._made
        for name in _KEPT.keys() & spec.keys():
            made.keep(f"spec.{name}", _KEPT[name])
        for name in _LOST.keys() & spec.keys():
            made.lose(f"spec.{name}", _LOST[name])
        for name, annotation in (("reclaimable", _NEVER_RECLAIM), ("priority", _QUEUE_PRIORITY)):
            if spec.get(name) not in (None, True, 0):
                self._report_annotation(name, annotation)
        for claim, amounts in _claims(self._queue).items():
            if "pods" in amounts:
                made.lose(f"spec.{claim}[pods]", "the number of pods is not a quota")
        if (self._queue.get("status") or {}).get("state") in ("Closed", "Closing"):
            made.lose("status.state", "write stopPolicy: Hold, which admits no new workloads")
        if self._tree.policy == "proportion":
            made.keep("spec", "the Cohort's sharing policy computes its deserved quota from weight and demand")

    def _report_annotation(self, name: str, annotation: str) -> None:
        if self._is_parent:
            self._made.lose(f"spec.{name}", "not supported on a Cohort: set it on the queues below")
        else:
            self._made.keep(f"spec.{name}", annotation)
