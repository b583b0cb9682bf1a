"""Kubernetes' LabelSelector, as a ClusterQueue uses it to select namespaces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from scheduling.model.selectors import NodeSelectorRequirement


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """`matchLabels` and `matchExpressions`, all of which must hold; an empty selector selects everything."""

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
        """Whether an object with these labels is selected."""
        return all(labels.get(key) == value for key, value in self.match_labels.items()) and all(
            requirement.matches(labels) for requirement in self.match_expressions
        )
