"""Selection of objects by labels: node selectors, required node affinity, taints, and label selectors.

Shared by flavor assignment, topology-aware scheduling and device placement. The semantics are those of the
Kubernetes scheduler (`NodeAffinity` and `TaintToleration` plugins). The flavor test is Kueue's, which uses only the
keys of the flavor's own node labels.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

HOSTNAME_LABEL = "kubernetes.io/hostname"
NAME_FIELD = "metadata.name"


class TaintEffect(StrEnum):
    """The effect of a taint on pods that do not tolerate it."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class TolerationOperator(StrEnum):
    """The comparison of a toleration with a taint's value. `Lt` and `Gt` compare numbers, with the taint's value on the
    left."""

    EQUAL = "Equal"
    EXISTS = "Exists"
    LT = "Lt"
    GT = "Gt"


class SelectionOperator(StrEnum):
    """The operators of a node selector requirement."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    LT = "Lt"


_REPELLING_EFFECTS = frozenset({TaintEffect.NO_SCHEDULE, TaintEffect.NO_EXECUTE})
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_DECIMAL_INTEGER = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)


def is_decimal_integer(text: str) -> bool:
    """Return whether Kubernetes accepts the text as a number in tolerations: no plus sign, no leading zeros."""
    return _DECIMAL_INTEGER.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Taint:
    """A node's or a flavor's taint."""

    key: str
    value: str = ""
    effect: TaintEffect = TaintEffect.NO_SCHEDULE

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any]) -> Self:
        """Read a `v1.Taint`. Raises KeyError without key or effect, ValueError for an unknown effect."""
        return cls(manifest["key"], manifest.get("value") or "", TaintEffect(manifest["effect"]))


@dataclass(frozen=True, slots=True)
class Toleration:
    """A pod's or a flavor's toleration; an empty key with `Exists` tolerates every taint, no effect means all."""

    key: str = ""
    operator: TolerationOperator = TolerationOperator.EQUAL
    value: str = ""
    effect: TaintEffect | None = None

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any]) -> Self:
        """Read a `v1.Toleration`. Raises ValueError for an unknown operator or effect."""
        effect = manifest.get("effect")
        return cls(
            manifest.get("key") or "",
            TolerationOperator(manifest.get("operator") or TolerationOperator.EQUAL),
            manifest.get("value") or "",
            TaintEffect(effect) if effect else None,
        )

    def tolerates(self, taint: Taint) -> bool:
        """Return whether this toleration covers the taint."""
        if self.effect is not None and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        match self.operator:
            case TolerationOperator.EXISTS:
                return True
            case TolerationOperator.EQUAL:
                return bool(self.key) and self.value == taint.value
            case TolerationOperator.LT | TolerationOperator.GT:
                return bool(self.key) and self._compares(taint.value)

    def _compares(self, value: str) -> bool:
        if not (is_decimal_integer(value) and is_decimal_integer(self.value)):
            return False
        bound = int(self.value)
        return int(value) < bound if self.operator is TolerationOperator.LT else int(value) > bound


@dataclass(frozen=True, slots=True)
class NodeSelectorRequirement:
    """One expression over a label (or, in `match_fields`, over `metadata.name`)."""

    key: str
    operator: SelectionOperator
    values: tuple[str, ...] = ()

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any]) -> Self:
        """Read a `v1.NodeSelectorRequirement`. Raises KeyError or ValueError for a malformed one."""
        return cls(manifest["key"], SelectionOperator(manifest["operator"]), tuple(manifest.get("values") or ()))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether the labels satisfy the expression; `NotIn` holds where the label is missing."""
        value = labels.get(self.key)
        match self.operator:
            case SelectionOperator.IN:
                return value is not None and value in self.values
            case SelectionOperator.NOT_IN:
                return value is None or value not in self.values
            case SelectionOperator.EXISTS:
                return value is not None
            case SelectionOperator.DOES_NOT_EXIST:
                return value is None
            case SelectionOperator.GT | SelectionOperator.LT:
                return self._compares(value)

    def _compares(self, value: str | None) -> bool:
        if value is None or len(self.values) != 1:
            return False
        bound = self.values[0]
        if not (_INTEGER.fullmatch(value) and _INTEGER.fullmatch(bound)):
            return False
        return int(value) > int(bound) if self.operator is SelectionOperator.GT else int(value) < int(bound)


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """Selects namespaces for a ClusterQueue: all of `matchLabels` and `matchExpressions` must hold. An empty
    selector selects everything."""

    match_labels: Mapping[str, str] = field(default_factory=dict)
    match_expressions: tuple[NodeSelectorRequirement, ...] = ()

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any]) -> Self:
        """Read a `metav1.LabelSelector`. Raises KeyError or ValueError for a malformed one."""
        return cls(
            dict(manifest.get("matchLabels") or {}),
            tuple(NodeSelectorRequirement.from_manifest(r) for r in manifest.get("matchExpressions") or ()),
        )

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether an object with these labels is selected."""
        return all(labels.get(key) == value for key, value in self.match_labels.items()) and all(
            requirement.matches(labels) for requirement in self.match_expressions
        )


@dataclass(frozen=True, slots=True)
class NodeSelectorTerm:
    """Expressions that must all hold. A term without expressions matches no node."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any]) -> Self:
        """Read a `v1.NodeSelectorTerm`."""
        return cls(
            tuple(NodeSelectorRequirement.from_manifest(r) for r in manifest.get("matchExpressions") or ()),
            tuple(NodeSelectorRequirement.from_manifest(r) for r in manifest.get("matchFields") or ()),
        )

    def matches(self, node_name: str, labels: Mapping[str, str]) -> bool:
        """Return whether the node satisfies every expression of the term."""
        if not self.match_expressions and not self.match_fields:
            return False
        fields = {NAME_FIELD: node_name}
        return all(r.matches(fields) for r in self.match_fields) and all(
            r.matches(labels) for r in self.match_expressions
        )


@dataclass(frozen=True, slots=True)
class RequiredNodeAffinity:
    """`requiredDuringSchedulingIgnoredDuringExecution`: a node matches if any term does; no terms match no node."""

    terms: tuple[NodeSelectorTerm, ...] = ()

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any]) -> Self:
        """Read a `v1.NodeSelector` (the value of requiredDuringSchedulingIgnoredDuringExecution)."""
        return cls(tuple(NodeSelectorTerm.from_manifest(term) for term in manifest.get("nodeSelectorTerms") or ()))

    def matches(self, node_name: str, labels: Mapping[str, str]) -> bool:
        """Return whether some term matches the node."""
        return any(term.matches(node_name, labels) for term in self.terms)


def required_node_affinity(pod_spec: Mapping[str, Any]) -> RequiredNodeAffinity | None:
    """Return the required node affinity of a pod spec in its manifest form, or None."""
    node_affinity = (pod_spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return None if required is None else RequiredNodeAffinity.from_manifest(required)


def tolerates(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    """Return whether any of the tolerations covers the taint."""
    return any(toleration.tolerates(taint) for toleration in tolerations)


def untolerated_taint(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> Taint | None:
    """Return the first NoSchedule or NoExecute taint that no toleration covers. PreferNoSchedule never repels a pod."""
    for taint in taints:
        if taint.effect in _REPELLING_EFFECTS and not tolerates(taint, tolerations):
            return taint
    return None


def matches_node_selector(node_selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    """Return whether the labels contain every pair of the node selector; an empty selector matches every node."""
    return all(labels.get(key) == value for key, value in node_selector.items())


def matches_flavor(
    node_selector: Mapping[str, str],
    affinity: RequiredNodeAffinity | None,
    flavor_labels: Mapping[str, str],
) -> bool:
    """Return whether a pod may use a flavor, judged only by the keys of the flavor's own node labels, as Kueue's flavor
    assigner does. Selector keys that the flavor lacks are dropped, and so are matchFields and expressions on other
    keys. A term that becomes empty satisfies the whole affinity."""
    if any(flavor_labels.get(key, value) != value for key, value in node_selector.items()):
        return False
    if affinity is None or not affinity.terms:
        return True
    return any(_term_matches_flavor(term, flavor_labels, flavor_labels.keys()) for term in affinity.terms)


def _term_matches_flavor(term: NodeSelectorTerm, labels: Mapping[str, str], keys: Collection[str]) -> bool:
    return all(r.matches(labels) for r in term.match_expressions if r.key in keys)
