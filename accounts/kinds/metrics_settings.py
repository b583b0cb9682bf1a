"""`metrics` of Kueue's Configuration: labels of users' own on metrics, and which LocalQueues have metrics."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from accounts.kinds import feature_gates
from kinds.label_selector import read_label_selector
from scheduling.manifest import FieldReader, MistakeReason
from scheduling.manifest.syntax import qualified_name

UNTRACKED: Final = "kueue.x-k8s.io/_UNTRACKED_VALUE_"
"""Stands for every value that `trackedValues` does not name."""
PREFIX: Final = "custom_"
_NAME: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9_]*", re.ASCII)
_MAX_LABELS: Final = 20
_MAX_VALUES: Final = 16
_MAX_VALUES_OF_WORKLOADS: Final = 12


class SourceKind(StrEnum):
    """The kind of object whose label or annotation becomes a label of its metrics."""

    COHORT = "Cohort"
    LOCAL_QUEUE = "LocalQueue"
    CLUSTER_QUEUE = "ClusterQueue"
    WORKLOAD = "Workload"


_MAX_BY_KIND: Final[Mapping[SourceKind, int]] = {
    SourceKind.COHORT: 6,
    SourceKind.LOCAL_QUEUE: 6,
    SourceKind.CLUSTER_QUEUE: 6,
    SourceKind.WORKLOAD: 2,
}


@dataclass(frozen=True, slots=True)
class CustomLabel:
    """A custom metric label. An empty `tracked` allows any value."""

    name: str
    kind: SourceKind
    label_key: str
    annotation_key: str
    tracked: tuple[str, ...]

    def value(self, labels: Mapping[str, str], annotations: Mapping[str, str]) -> str:
        """Return the value for an object with these labels and annotations."""
        found = annotations.get(self.annotation_key, "") if self.annotation_key else labels.get(self.label_key, "")
        return found if not self.tracked or found in self.tracked else UNTRACKED


def custom_labels(configuration: Mapping[str, Any]) -> Iterator[CustomLabel]:
    """Yield the labels that a stored Configuration puts on metrics; none while the gate CustomMetricLabels is off."""
    if not feature_gates.is_on(configuration, feature_gates.CUSTOM_METRIC_LABELS):
        return
    for entry in (configuration.get("metrics") or {}).get("customLabels") or ():
        annotation = entry.get("sourceAnnotationKey") or ""
        yield CustomLabel(
            name=f"{PREFIX}{entry['name']}",
            kind=SourceKind(entry.get("sourceKind") or SourceKind.CLUSTER_QUEUE),
            label_key="" if annotation else entry.get("sourceLabelKey") or entry["name"],
            annotation_key=annotation,
            tracked=tuple(entry.get("trackedValues") or ()),
        )


@dataclass(frozen=True, slots=True)
class CopiedKeys:
    """The keys of labels and annotations that a new workload takes over from its job."""

    labels: frozenset[str]
    annotations: frozenset[str]

    def of(self, labels: Mapping[str, str], annotations: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
        """Return the metric labels of a job with these labels and annotations."""
        return (
            {key: value for key, value in labels.items() if key in self.labels},
            {key: value for key, value in annotations.items() if key in self.annotations},
        )


def copied_keys(configuration: Mapping[str, Any]) -> CopiedKeys:
    """`integrations.labelKeysToCopy` of a stored Configuration, and what metrics of workloads are labelled by."""
    listed = (configuration.get("integrations") or {}).get("labelKeysToCopy") or ()
    sources = [label for label in custom_labels(configuration) if label.kind is SourceKind.WORKLOAD]
    return CopiedKeys(
        frozenset((*listed, *(label.label_key for label in sources if label.label_key))),
        frozenset(label.annotation_key for label in sources if label.annotation_key),
    )


def read_metrics(top: FieldReader) -> None:
    """Validate the block."""
    block = top.fields("metrics")
    if block is None:
        return
    block.text("bindAddress")
    block.boolean("enableClusterQueueResources")
    chosen = block.fields("localQueueMetrics")
    if chosen is not None:
        chosen.boolean("enable")
        read_label_selector(chosen, "localQueueSelector")
        chosen.close()
    _read_custom_labels(block)
    block.close()


def _read_custom_labels(block: FieldReader) -> None:
    by_kind: Counter[SourceKind] = Counter()
    names: set[str] = set()
    for item in block.items("customLabels", max_items=_MAX_LABELS):
        name = item.text("name", required=True, syntax=_label_name)
        if name and name in names:
            item.error("name", "Duplicate value", "Remove one.", MistakeReason.DUPLICATE)
        names.add(name)
        label = item.text("sourceLabelKey", syntax=qualified_name)
        if item.text("sourceAnnotationKey", syntax=qualified_name) and label:
            rule = "can't be set together with sourceAnnotationKey"
            item.error("sourceLabelKey", rule, "Keep one of the two.", MistakeReason.FORBIDDEN)
        kind = item.choice("sourceKind", SourceKind.CLUSTER_QUEUE)
        by_kind[kind] += 1
        of_workloads = kind is SourceKind.WORKLOAD
        item.texts(
            "trackedValues",
            min_items=int(of_workloads),
            max_items=_MAX_VALUES_OF_WORKLOADS if of_workloads else _MAX_VALUES,
        )
        item.close()
    for kind, count in by_kind.items():
        if count > _MAX_BY_KIND[kind]:
            rule = f"must have at most {_MAX_BY_KIND[kind]} labels of sourceKind {kind}, has {count}"
            block.error("customLabels", rule, f"Remove {count - _MAX_BY_KIND[kind]}.", MistakeReason.TOO_MANY)


def _label_name(text: str) -> str | None:
    return None if _NAME.fullmatch(text) else "must consist of letters, digits and _, and begin with a letter"
