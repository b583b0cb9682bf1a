"""Every supported kind, in the order in which an apply stores them, and known but unsupported kinds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from accounts.kinds.configuration import read_configuration
from clusters.jobs.framework.job_kind import JobKind
from clusters.jobs.framework.store import Objects
from clusters.jobs.reading import reader_of
from clusters.jobs.registry import JOB_KINDS
from foundation.exceptions import HostileManifest, InvalidRequest, ManifestErrors
from gpus.manifests import read_config_map, read_node
from kinds.declaration import ManifestKind
from queues.kinds import KINDS as CONFIGURATION_KINDS
from queues.manifests.documents import read_documents
from queues.manifests.job import JobManifest
from queues.manifests.workload_object import read_workload
from scheduling.manifest import FieldReader
from scheduling.manifest.field_reader import suggestion


@dataclass(frozen=True)
class DocumentKind(ManifestKind):
    """A kind that is not one configuration row: its reader is given."""

    reader: Callable[[FieldReader, str], Any] = lambda top, _: top.content

    def read(self, top: FieldReader, version: str) -> Any:
        return self.reader(top, version)


@dataclass(frozen=True)
class JobDocumentKind(ManifestKind):
    """A kind of job: its meaning may depend on other objects of its cluster."""

    rules: JobKind | None = None

    def read(self, top: FieldReader, version: str) -> JobManifest:
        return self.read_among(top, None)

    def read_among(self, top: FieldReader, objects: Objects | None) -> JobManifest:
        """Read the job in a document, in a cluster with these objects."""
        assert self.rules is not None  # the default is for the dataclass only
        return reader_of(self.rules)(top, objects)


def _job_document_kind(kind: JobKind) -> JobDocumentKind:
    versions = (kind.api_version,)
    return JobDocumentKind(kind.kind, versions, kind.plural, kind.short_names, namespaced=True, rules=kind)


def _read_config_map(top: FieldReader, version: str) -> Any:
    """Read the data values that are YAML mappings: HAMi keeps its settings there."""
    data = top.content.get("data")
    contents: dict[str, dict[str, Any]] = {}
    for name, text in data.items() if isinstance(data, Mapping) else ():
        if not isinstance(text, str):
            continue
        try:
            documents = read_documents(text)
        except HostileManifest as mistake:
            top.report.error(f"{top.at('data')}[{name}]", text, mistake.errors[0].rule, mistake.errors[0].remedy)
        except ManifestErrors:
            continue  # not YAML, or not a mapping: not HAMi's settings
        else:
            if documents:
                contents[name] = documents[0].content
    return read_config_map(top, contents)


_CONFIGURATION: Final = ("config.kueue.x-k8s.io/v1beta2", "config.kueue.x-k8s.io/v1beta1")
_WORKLOAD: Final = ("kueue.x-k8s.io/v1beta2", "kueue.x-k8s.io/v1beta1")

SETTINGS: Final = ("Configuration", "ConfigMap")
"""Configuration that is not a row of its own but belongs to its cluster's."""

KINDS: Final[Mapping[str, ManifestKind]] = {
    kind.name: kind
    for kind in (
        DocumentKind("Configuration", _CONFIGURATION, "configurations", reader=read_configuration),
        *CONFIGURATION_KINDS.values(),
        DocumentKind("ConfigMap", ("v1",), "config-maps", ("cm",), namespaced=True, reader=_read_config_map),
        DocumentKind("Node", ("v1",), "nodes", ("no",), reader=read_node),
        *map(_job_document_kind, JOB_KINDS.values()),
        DocumentKind(
            "Workload", _WORKLOAD, "workloads", ("wl", "kwl", "kueueworkload"), namespaced=True, reader=read_workload
        ),
    )
}


def has_version(kind: ManifestKind) -> bool:
    """Return whether its objects are configuration. A write of these may name the resourceVersion that was read."""
    return kind.name in CONFIGURATION_KINDS or kind.name in SETTINGS


def group_of(api_version: str) -> str:
    """`batch/v1` -> `batch`; the core group is empty."""
    return api_version.rpartition("/")[0]


def version_of(api_version: str) -> str:
    """`batch/v1` -> `v1`."""
    return api_version.rpartition("/")[2]


def kind_named(word: str) -> ManifestKind:
    """Return the kind for the word that a user writes: its name in any case, its plural or its short name. Raises
    `InvalidRequest`."""
    known = _known_words()
    kind = known.get(word.lower().partition(".")[0])
    if kind is None:
        raise InvalidRequest(f'"{word}" is not a supported kind. {suggestion(word, KINDS)}')
    return kind


def _known_words() -> dict[str, ManifestKind]:
    return {word: kind for kind in KINDS.values() for word in kind.words}
