"""Documents -> objects of known kinds; all mistakes of the whole request are found in one pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from accounts.services.apply_result import Submitted
from clusters.jobs.framework.store import Objects
from clusters.jobs.owned_keys import owned_paths
from clusters.jobs.registry import JOB_KINDS
from clusters.manifests.foreign_kinds import FOREIGN_GROUPS, REPLACEMENTS
from clusters.manifests.kinds import KINDS, JobDocumentKind, group_of, version_of
from clusters.manifests.kueue_config_map import held_configuration
from clusters.manifests.translation.translated import Translation
from clusters.manifests.translation.translations import translate_all
from foundation.exceptions import ManifestErrors, UnsupportedKind
from kinds.declaration import ManifestKind
from queues.manifests.bounds import size_mistake
from queues.manifests.documents import Document
from scheduling.manifest import FieldReader, LocatedError, MistakeReason, ObjectMeta, ValidationReport
from scheduling.manifest.field_reader import suggestion

_BESIDE_JOBS = frozenset(
    {
        "ClusterRole", "ConfigMap", "DeviceClass", "PersistentVolumeClaim", "ResourceClaim", "ResourceClaimTemplate",
        "Role", "Secret", "Service", "ServiceAccount",
    }
)  # fmt: skip
"""Kinds that users keep in one file with their jobs. Only the cluster stores them: claims are read from there, and of
the others kueueweb uses only the ConfigMap of a device plugin."""


@dataclass(frozen=True, slots=True)
class Object:
    """An object of the call, read; `meta` identifies it. `shared`: a translation needs it; an existing one is not
    changed.
    """

    kind: ManifestKind
    meta: ObjectMeta
    submitted: Submitted[Any]
    shared: bool = False

    @property
    def identity(self) -> tuple[str, str]:
        """Return the kind and the key; a generated name is new each time."""
        return self.kind.name, self.meta.key


def read_objects(
    documents: Sequence[Document], there: Objects | None = None, *, skip_unsupported: bool = False
) -> tuple[list[Object], list[LocatedError]]:
    """Return the objects of a call, with Lists unpacked, and the skipped documents.

    `there` are objects that jobs may refer to. A companion of a job (a Service, a Secret ...) is skipped, and with
    `skip_unsupported` every unsupported kind. Raises `ManifestErrors` with every mistake, and `UnsupportedKind` if all
    objects are of unsupported kinds, or if no document is left.
    """
    reports: list[ValidationReport] = []
    objects: list[Object] = []
    unpacked: list[tuple[ValidationReport, str, Mapping[str, Any]]] = []
    for document in documents:
        report = ValidationReport(document.index, document.source)
        reports.append(report)
        unpacked += [(report, path, content) for path, content in _unpacked(document, report)]
    translated = translate_all([content for _, _, content in unpacked])
    for place, (report, path, content) in enumerate(unpacked):
        too_large = size_mistake(content, report.document, path) if place in translated else None
        if too_large is not None:
            report.errors.append(too_large)
        elif place in translated:
            objects += _read_translated(report, path, translated[place], there, reports)
        if place in translated:
            continue
        held = held_configuration(content, report, path)
        found = _read_object(report, *(held or (path, content)), there)
        if found is not None:
            objects.append(found)
    _refuse_twins(objects)
    errors: list[LocatedError] = []
    skipped: list[LocatedError] = []
    for error in (error for report in reports for error in report.errors):
        unsupported = error.reason == MistakeReason.UNSUPPORTED_KIND
        beside = str(error.value) in _BESIDE_JOBS
        (skipped if unsupported and (skip_unsupported or beside) else errors).append(error)
    if errors or (skipped and not objects):
        raise _as_exception(errors or skipped)
    for report in reports:
        report.errors = []
    return objects, skipped


def _read_translated(
    report: ValidationReport,
    path: str,
    translation: Translation,
    there: Objects | None,
    reports: list[ValidationReport],
) -> Iterator[Object]:
    """Yield our objects for an object of another scheduler; none if its translation was refused, which is an error.

    The first one carries the warnings about lost fields. The path of an error in an object of ours begins with the kind
    that it was translated to, such as `(as Cohort)`.
    """
    for refusal in translation.refusals:
        place = f"{path}.{refusal.path}" if path else refusal.path
        report.error(place, refusal.value, refusal.rule, refusal.remedy, refusal.reason)
    shared = [*translation.shared]
    for manifest in [*translation.manifests, *shared] if not translation.refusals else ():
        own = ValidationReport(report.document, report.source)
        reports.append(own)
        found = _read_object(own, f"(as {manifest['kind']})", manifest, there)
        if found is None:
            continue
        if manifest is translation.manifests[0]:
            for note in translation.lost:
                own.warn(f"{path}.{note.path}" if path else note.path, f"is lost: {note.text}")
        yield replace(found, shared=manifest in shared)


def _as_exception(errors: list[LocatedError]) -> ManifestErrors:
    if all(error.reason == MistakeReason.UNSUPPORTED_KIND for error in errors):
        return UnsupportedKind(errors)
    return ManifestErrors(errors)


def _unpacked(document: Document, report: ValidationReport) -> Iterator[tuple[str, Mapping[str, Any]]]:
    content = document.content
    if content.get("kind") != "List" or content.get("apiVersion") != "v1":
        yield "", content
        return
    top = FieldReader(report, "", content)
    top.ignore("apiVersion", "kind", "metadata")
    for item in top.items("items"):
        yield item.path, item.content
    top.close()


def _read_object(
    report: ValidationReport, path: str, content: Mapping[str, Any], there: Objects | None
) -> Object | None:
    top = FieldReader(report, path, content)
    api_version = top.text("apiVersion", required=True)
    name = top.text("kind", required=True)
    if not api_version or not name:
        return None
    kind = KINDS.get(name)
    if kind is None or api_version not in kind.versions:
        _refuse_kind(top, api_version, name)
        return None
    mistakes = len(report.errors)
    too_large = size_mistake(content, report.document, path)
    if too_large is not None:
        report.errors.append(too_large)
        return None
    if version_of(api_version).startswith("v1alpha") and "v1beta2" in map(version_of, kind.versions):
        top.warn("apiVersion", f"Kueue no longer serves {api_version}: write {kind.versions[0]}")
    spec = kind.read_among(top, there) if isinstance(kind, JobDocumentKind) else kind.read(top, version_of(api_version))
    top.close()
    if name in JOB_KINDS:
        for owned in owned_paths(content, path):
            report.warn(owned, "is ignored: only a scheduler or a device plugin may write it")
    if len(report.errors) > mistakes:
        return None
    return Object(kind, _meta(kind, spec, content), Submitted(spec, report, api_version, path))


def _meta(kind: ManifestKind, spec: Any, content: Mapping[str, Any]) -> ObjectMeta:
    if kind.name == "Configuration":
        uid, version = (str((content.get("metadata") or {}).get(key) or "") for key in ("uid", "resourceVersion"))
        return ObjectMeta("", uid=uid, resource_version=version)
    if kind.name == "Workload":
        return ObjectMeta(spec.name, spec.namespace, generate_name=spec.generate_name)
    meta: ObjectMeta = spec.meta
    return meta


def _refuse_kind(top: FieldReader, api_version: str, name: str) -> None:
    kind = KINDS.get(name)
    if kind is not None and group_of(api_version) in {group_of(version) for version in kind.versions}:
        versions = ", ".join(kind.versions)
        top.error(
            "apiVersion",
            f"Unsupported value: not a supported version of {name}",
            f"Use {versions}.",
            MistakeReason.UNSUPPORTED_KIND,
        )
        return
    group = group_of(api_version)
    owner = FOREIGN_GROUPS.get(group)
    whose = f"{name} of {owner} ({api_version})" if owner else f"{api_version} {name}"
    instead = REPLACEMENTS.get((group, name))
    if instead is None:
        # A ClusterRole is not a misspelled ClusterQueue: only groups with supported kinds can contain a misspelled
        # kind.
        ours = {group_of(version) for each in KINDS.values() for version in each.versions}
        hint = suggestion(name, KINDS) if kind is None and group in ours else ""
        instead = f"{f'{hint} ' if hint.startswith('Did you mean') else ''}Leave it out of this call"
    remedy = f"{instead}. Supported are {', '.join(KINDS)}."
    top.error("kind", f"Unsupported value: {whose}", remedy, MistakeReason.UNSUPPORTED_KIND)


def _refuse_twins(objects: Sequence[Object]) -> None:
    seen: dict[tuple[str, str], Object] = {}
    for found in objects:
        if found.meta.generate_name:
            continue
        first = seen.setdefault(found.identity, found)
        if first is found:
            continue
        report, earlier = found.submitted.report, first.submitted.report
        where = f"{earlier.source}, document {earlier.document}," if earlier.source else f"document {earlier.document}"
        report.error(
            found.submitted.at("metadata.name"),
            found.meta.name,
            f"{f'{found.kind.name} {found.meta.key}'.strip()} is also in {where} of this request",
            "Keep one of them, or apply them in separate requests.",
            MistakeReason.DUPLICATE,
        )
