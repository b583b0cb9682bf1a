"""AdmissionCheck: a condition that another controller must confirm before a workload with quota may start."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from scheduling.model.selectors import Toleration
from scheduling.model.vocabulary import AdmissionCheckStatus


@dataclass(frozen=True, slots=True)
class AdmissionCheck:
    """Kueue's AdmissionCheck: which controller answers, and whether it is active."""

    name: str
    controller_name: str = ""
    active: bool = True


@dataclass(frozen=True, slots=True)
class AdmissionCheckRule:
    """An admission check of a ClusterQueue; no flavors means every flavor."""

    name: str
    on_flavors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PodSetUpdate:
    """The changes that a Ready check makes to the pods of a pod set. `tolerations` are in Kubernetes' form."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any]) -> Self:
        """Read one of `status.admissionChecks[].podSetUpdates`. Raises KeyError without a name."""
        return cls(
            manifest["name"],
            dict(manifest.get("labels") or {}),
            dict(manifest.get("annotations") or {}),
            dict(manifest.get("nodeSelector") or {}),
            tuple(manifest.get("tolerations") or ()),
        )

    def manifest(self) -> dict[str, Any]:
        """Return the update in Kubernetes' form."""
        fields = {
            "labels": dict(self.labels),
            "annotations": dict(self.annotations),
            "nodeSelector": dict(self.node_selector),
            "tolerations": [dict(toleration) for toleration in self.tolerations],
        }
        return {"name": self.name, **{name: value for name, value in fields.items() if value}}


@dataclass(frozen=True, slots=True)
class AdmissionCheckState:
    """The state of one check of one workload (`status.admissionChecks`)."""

    name: str
    state: AdmissionCheckStatus = AdmissionCheckStatus.PENDING
    message: str = ""
    last_transition_time: float = 0.0
    requeue_after_seconds: float | None = None
    retry_count: int = 0
    pod_set_updates: tuple[PodSetUpdate, ...] = ()


def required_checks(rules: Sequence[AdmissionCheckRule], flavors: Collection[str]) -> list[str]:
    """Return the checks of a ClusterQueue that apply to a workload with these flavors, sorted by name."""
    return sorted(rule.name for rule in rules if not rule.on_flavors or any(f in flavors for f in rule.on_flavors))


def updates_of(checks: Iterable[AdmissionCheckState], pod_set: str) -> list[PodSetUpdate]:
    """Return the updates of Ready checks for a pod set, in the order of the checks."""
    ready = (check for check in checks if check.state is AdmissionCheckStatus.READY)
    return [update for check in ready for update in check.pod_set_updates if update.name == pod_set]


def added_selection(
    checks: Iterable[AdmissionCheckState], pod_set: str
) -> tuple[Mapping[str, str], tuple[Toleration, ...]]:
    """Return the node selector and tolerations that checks add to a pod set; both restrict the nodes of its pods."""
    updates = updates_of(checks, pod_set)
    selector = {key: value for update in updates for key, value in update.node_selector.items()}
    tolerations = tuple(Toleration.from_manifest(entry) for update in updates for entry in update.tolerations)
    return selector, tolerations
