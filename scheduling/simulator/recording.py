"""A recording of a cluster that another scheduler runs, and kueueweb's decision at each of its decisions.

A recording is the output of `kubectl get KIND -o json`, of the same with `--watch`, or the API server's audit log with
response bodies, in any mixture. resourceVersions are one order of all changes in a cluster, whatever the kind.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from scheduling.model.configuration import Configuration
from scheduling.model.times import parse_rfc3339
from scheduling.model.topology import Topology
from scheduling.model.vocabulary import ConditionType
from scheduling.model.workload import Workload
from scheduling.shadow.comparisons import MAX_PATIENCE_SECONDS, PATIENCE_SECONDS, Comparison, Shadow
from scheduling.simulator.scenario import (
    read_admission_check,
    read_cluster_queue,
    read_cohort,
    read_local_queue,
    read_node,
    read_resource_flavor,
)
from scheduling.simulator.workload_manifest import read_workload
from scheduling.world import World

Manifest = Mapping[str, Any]

_KUEUE: Final = "kueue.x-k8s.io/"
_READ: Final = "kueue.x-k8s.io/v1beta2"
_AUDIT: Final = "audit.k8s.io/"
_CHANGES: Final = ("create", "update", "patch", "delete")
_CONFIGURATION: Final = (
    "Namespace", "Topology", "Node", "ResourceFlavor", "AdmissionCheck", "Cohort", "ClusterQueue", "LocalQueue",
)  # fmt: skip
"""In the order in which they refer to each other."""
_ANY: Final[Manifest] = {}


class UnreadableRecording(ValueError):
    """The file is not a recording of `kubectl` or the API server, or it has another version of Kueue's API."""


@dataclass(frozen=True, slots=True)
class Change:
    """An object from one resourceVersion on; `gone`: it was deleted. `at`: seconds since the epoch, 0 if the time of
    its deletion is unknown.
    """

    version: int
    at: float
    kind: str
    key: str
    manifest: Manifest
    gone: bool = False


@dataclass(frozen=True, slots=True)
class Told:
    """A comparison, and the time when the other scheduler's decision was written."""

    at: float
    comparison: Comparison


def read_changes(texts: Iterable[str]) -> list[Change]:
    """Read the changes of a recording's files, in the cluster's order, each once. Raises UnreadableRecording."""
    found = [change for text in texts for document in _documents(text) for change in _changes_in(document)]
    latest: dict[tuple[str, str], int] = {}
    ordered = []
    for change in sorted(found, key=lambda each: each.version):
        if latest.get((change.kind, change.key), -1) < change.version:
            latest[change.kind, change.key] = change.version
            ordered.append(change)
    return ordered


def _documents(text: str) -> Iterator[Manifest]:
    decoder, position = json.JSONDecoder(), 0
    while position < len(text):
        if text[position].isspace():
            position += 1
            continue
        try:
            document, position = decoder.raw_decode(text, position)
        except json.JSONDecodeError as error:
            raise UnreadableRecording(f"line {error.lineno}: not JSON: {error.msg}") from error
        if not isinstance(document, dict):
            raise UnreadableRecording(f"before character {position}: Invalid value: must be an object")
        yield document


def _changes_in(document: Manifest) -> Iterator[Change]:
    """Yield the changes in a list, in an event of a watch or of an audit log, or in one object."""
    kind, version = document.get("kind", ""), document.get("apiVersion", "")
    if isinstance(document.get("items"), list):
        for item in document["items"]:
            yield from _changes_in({"apiVersion": version, "kind": kind.removesuffix("List"), **item})
    elif "object" in document and "type" in document:
        if document["type"] in ("ADDED", "MODIFIED", "DELETED"):
            yield from _change(document["object"], gone=document["type"] == "DELETED")
    elif version.startswith(_AUDIT):
        answer = document.get("responseObject") or {}
        done = document.get("stage") == "ResponseComplete" and document.get("verb") in _CHANGES
        if done and (document.get("responseStatus") or {}).get("code", 0) < 300:
            gone = document["verb"] == "delete" and not (answer.get("metadata") or {}).get("finalizers")
            yield from _change(answer, gone=gone, at=_seconds(document.get("stageTimestamp")))
    else:
        yield from _change(document)


def _change(manifest: Manifest, *, gone: bool = False, at: float = 0.0) -> Iterator[Change]:
    kind, metadata = manifest.get("kind", ""), manifest.get("metadata") or {}
    api_version = manifest.get("apiVersion", "")
    if kind not in (*_CONFIGURATION, "Workload") or not metadata.get("name"):
        return
    if kind in ("Namespace", "Node"):
        if api_version != "v1":
            return
    elif not api_version.startswith(_KUEUE):
        return
    elif api_version != _READ:
        name = f"{kind} {metadata['name']}"
        raise UnreadableRecording(f'{name}: Unsupported value "{api_version}": supported values: "{_READ}"')
    key = "/".join(filter(None, (metadata.get("namespace", ""), metadata["name"])))
    text = metadata.get("resourceVersion") or ""
    if not text.isdecimal():
        raise UnreadableRecording(f"{kind} {key}: Required value: metadata.resourceVersion")
    # A deleted object without finalizers no longer exists, although a plain watch prints it once more.
    gone = gone or bool(metadata.get("deletionTimestamp") and not metadata.get("finalizers"))
    is_timed = not gone or metadata.get("deletionTimestamp")
    yield Change(int(text), max(at, _latest_time(manifest) if is_timed else 0.0), kind, key, manifest, gone)


def _latest_time(manifest: Manifest) -> float:
    metadata = manifest["metadata"]
    texts = [metadata.get("creationTimestamp"), metadata.get("deletionTimestamp")]
    texts += [entry.get("time") for entry in metadata.get("managedFields") or ()]
    conditions = (manifest.get("status") or {}).get("conditions") or ()
    texts += [entry.get("lastTransitionTime") for entry in conditions]
    return max((_seconds(text) for text in texts), default=0.0)


def _seconds(text: str | None) -> float:
    return parse_rfc3339(text) if text else 0.0


class Replay:
    """Replays a recording into a World, and asks our rules at each recorded decision."""

    def __init__(self, configuration: Configuration | None = None) -> None:
        self._world = World(configuration)
        self._shadow = Shadow(self._world)
        self._known: dict[tuple[str, str], Any] = {}
        self._now = 0.0
        self.unanswered: list[Comparison] = []
        """After `play`: our decisions at the end of the recording. The other scheduler may have made them later."""

    def play(self, changes: Iterable[Change]) -> Iterator[Told]:
        """Yield the comparisons, in the order of the decisions. Raises UnreadableRecording."""
        changes = list(changes)
        self._begin(changes)
        for change, at in zip(changes, _times(changes), strict=True):
            yield from self._rest(at)
            self._now = max(self._now, at)
            if change.kind == "Workload":
                yield from self._hear(change)
            else:
                self._configure(change)
        yield from (Told(self._now, found) for found in self._shadow.rest(self._now) + self._shadow.conclude())
        self.unanswered = self._shadow.unanswered(self._now)

    def _begin(self, changes: Iterable[Change]) -> None:
        """The first state of each queue holds from the beginning, and so do the namespaces of all workloads."""
        first: dict[tuple[str, str], Change] = {}
        for change in changes:
            first.setdefault((change.kind, change.key), change)
            namespace = change.key.partition("/")[0]
            if change.kind in ("Workload", "LocalQueue"):
                self._world.set_namespace(namespace, {"kubernetes.io/metadata.name": namespace})
        for kind in _CONFIGURATION:
            for change in first.values():
                if change.kind == kind:
                    self._configure(change)

    def _rest(self, until: float) -> Iterator[Told]:
        """Nothing happens until then."""
        if self._now and until - self._now >= PATIENCE_SECONDS:
            for at in (self._now, self._now + PATIENCE_SECONDS, self._now + MAX_PATIENCE_SECONDS):
                if at <= until:
                    yield from (Told(at, found) for found in self._shadow.rest(at))

    def _hear(self, change: Change) -> Iterator[Told]:
        workload = None if change.gone else self._read_workload(change)
        if workload is not None and workload.is_true(ConditionType.FINISHED):
            workload = None
        is_first = self._known.setdefault(("Workload", change.key), change) is change
        if is_first and workload is not None and workload.holds_quota:
            self._shadow.take(change.key, workload, self._now)  # the decision was made before the recording began
            return
        for found in self._shadow.hear(change.key, workload, self._now):
            yield Told(self._now, found)

    def _read_workload(self, change: Change) -> Workload:
        read = self._read(read_workload, change, change.manifest)
        counted: Workload = self._world.configuration.features.counted(read)
        return counted

    def _configure(self, change: Change) -> None:
        add, forget, read = self._doors(change.kind)
        if change.gone:
            self._known.pop((change.kind, change.key), None)
            forget(change.key)
            return
        found = self._read(read, change, change.manifest)
        if self._known.get((change.kind, change.key)) != found:
            self._known[change.kind, change.key] = found
            add(found)

    @staticmethod
    def _read(read: Callable[[Manifest], Any], change: Change, manifest: Manifest) -> Any:
        try:
            return read(manifest)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise UnreadableRecording(f"{change.kind} {change.key}: {type(error).__name__}: {error}") from error

    def _doors(self, kind: str) -> tuple[Callable[[Any], None], Callable[[str], None], Callable[[Manifest], Any]]:
        world = self._world
        return {
            "Namespace": (lambda found: world.set_namespace(*found), world.delete_namespace, _read_namespace),
            "Topology": (world.set_topology, world.delete_topology, Topology.from_manifest),
            "Node": (world.set_node, world.delete_node, read_node),
            "ResourceFlavor": (world.set_resource_flavor, world.delete_resource_flavor, read_resource_flavor),
            "AdmissionCheck": (world.set_admission_check, world.delete_admission_check, read_admission_check),
            "Cohort": (world.set_cohort, world.delete_cohort, read_cohort),
            "ClusterQueue": (world.set_cluster_queue, world.delete_cluster_queue, read_cluster_queue),
            "LocalQueue": (world.set_local_queue, world.delete_local_queue, read_local_queue),
        }[kind]


def _times(changes: Sequence[Change]) -> list[float]:
    """Return the time of each change. A change without a time gets that of the next one, so that capacity is never
    released early."""
    times, following = [], 0.0
    for change in reversed(changes):
        following = change.at or following
        times.append(following)
    return times[::-1]


def _read_namespace(manifest: Manifest) -> tuple[str, Mapping[str, str]]:
    metadata = manifest["metadata"]
    return metadata["name"], metadata.get("labels") or _ANY
