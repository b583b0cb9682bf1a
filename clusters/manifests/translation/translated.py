"""The result of a translation: our manifests, and the fate of each field (pure)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from queues.manifests.kueue_keys import TRANSLATED
from scheduling.manifest import MistakeReason
from scheduling.model.quantity import NANOS, InvalidQuantity, parse_quantity

JsonObject = dict[str, Any]

_MAX_NOTES: Final = 64
"""Notes in an annotation: a hostile author may have thousands of fields."""


@dataclass(frozen=True, slots=True)
class Note:
    """A field of the source, and whether it was kept, changed, lost or refused."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """A field of the source that is refused."""

    path: str
    value: Any
    rule: str
    remedy: str = ""
    reason: MistakeReason = MistakeReason.INVALID


@dataclass(slots=True)
class Translation:
    """Our manifests for objects of another scheduler.

    * shared: manifests that several objects need (a Cohort, a ResourceFlavor); an existing one is not changed.
    * kept: fields whose meaning is kept in another form; lost: fields without effect here; refusals: the mistakes.
    """

    source: str
    manifests: list[JsonObject] = field(default_factory=list)
    shared: list[JsonObject] = field(default_factory=list)
    kept: list[Note] = field(default_factory=list)
    lost: list[Note] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)

    def keep(self, path: str, text: str) -> None:
        self.kept.append(Note(path, text))

    def lose(self, path: str, text: str) -> None:
        self.lost.append(Note(path, text))

    def refuse(
        self, path: str, value: Any, rule: str, remedy: str = "", reason: MistakeReason = MistakeReason.INVALID
    ) -> None:
        self.refusals.append(Refusal(path, value, rule, remedy, reason))

    def refuse_all(self, refusals: Iterable[Refusal]) -> bool:
        """Add refusals; return whether any were added."""
        self.refusals += refusals
        return bool(self.refusals)

    def refuse_fractions(self, path: str, pod_spec: Mapping[str, Any]) -> None:
        """Refuse a part of a device, which Kubernetes refuses too: devices are shared by their memory and cores."""
        for kind in ("initContainers", "containers"):
            for number, container in enumerate(pod_spec.get(kind) or ()):
                for what, amounts in (container.get("resources") or {}).items():
                    for name, text in amounts.items() if isinstance(amounts, Mapping) else ():
                        self._refuse_fraction(f"{path}.{kind}[{number}].resources.{what}[{name}]", name, text)

    def _refuse_fraction(self, path: str, name: str, text: Any) -> None:
        try:
            nanos = parse_quantity(text)
        except InvalidQuantity:
            return  # the reader of the pods says so
        if "/" not in name or nanos % NANOS == 0:
            return
        vendor, _, device = name.partition("/")
        percent = nanos * 100 // NANOS
        part = (
            f'{name}: "1" with {vendor}/{device}mem-percentage: "{percent}" (and {vendor}/{device}cores: "{percent}")'
        )
        remedy = f"Write {part}." if nanos < NANOS else f"Write a whole number; a part of a device is {part}."
        self.refuse(path, text, "must be an integer: Kubernetes does not divide extended resources", remedy)

    def annotated(self, manifest: JsonObject) -> JsonObject:
        """Return a manifest with the annotation that names its source."""
        metadata = dict(manifest.get("metadata") or {})
        metadata["annotations"] = {**(metadata.get("annotations") or {}), TRANSLATED: self.note()}
        return {**manifest, "metadata": metadata}

    def note(self) -> str:
        """Return the text of the annotation."""
        told = {
            "from": self.source,
            "kept": {note.path: note.text for note in self.kept[:_MAX_NOTES]},
            "lost": {note.path: note.text for note in self.lost[:_MAX_NOTES]},
        }
        return json.dumps({key: value for key, value in told.items() if value}, ensure_ascii=False)


def metadata_of(content: Mapping[str, Any]) -> JsonObject:
    """Return the parts of an object's metadata that its author writes."""
    metadata = content.get("metadata") or {}
    names = ("name", "generateName", "namespace", "labels", "annotations")
    return {name: metadata[name] for name in names if metadata.get(name)}
