"""Kueue's own objects where kueueweb serves them: Kueue's rules, and the finalizer that some of them have."""

from __future__ import annotations

from typing import Any, Final

from clusters.jobs.framework.errors import ErrorType, FieldError, FieldErrors, forbidden, invalid
from clusters.jobs.framework.manifest import JsonObject, dig
from clusters.served.contents import FINALIZER, WITH_FINALIZER, as_submitted
from clusters.served.kueue_kinds import KUEUE_KINDS
from clusters.webhook.json_patch import json_patch
from clusters.webhook.reviews import ALLOWED, CREATE, AdmissionRequest, Verdict, refused_fields
from kinds.declaration import Kind, KindSpec
from queues.kinds import KINDS
from queues.manifests.workload_object import read_workload
from scheduling.manifest import FieldReader, LocatedError, MistakeReason, ValidationReport
from scheduling.model.vocabulary import ConditionStatus, ConditionType

MUTATE_KUEUE: Final = "/mutate/kueue"
VALIDATE_KUEUE: Final = "/validate/kueue"
KUEUE_PATHS: Final = (MUTATE_KUEUE, VALIDATE_KUEUE)
_SERVED: Final = {(each.api_version, each.kind) for kinds in KUEUE_KINDS.values() for each in kinds}
_TYPES: Final = {
    MistakeReason.REQUIRED: ErrorType.REQUIRED,
    MistakeReason.FORBIDDEN: ErrorType.FORBIDDEN,
    MistakeReason.TOO_MANY: ErrorType.TOO_MANY,
    MistakeReason.TOO_LONG: ErrorType.TOO_LONG,
}
_FROZEN_WITH_QUOTA: Final = ("queueName", "podSets")


def review_kueue_object(path: str, request: AdmissionRequest) -> Verdict:
    """Return the answer to a request about one of Kueue's objects."""
    if (request.api_version, request.kind) not in _SERVED or dig(request.object, "metadata", "deletionTimestamp"):
        return ALLOWED
    return _held(request) if path == MUTATE_KUEUE else _validated(request)


def _held(request: AdmissionRequest) -> Verdict:
    finalizers = dig(request.object, "metadata", "finalizers") or []
    if request.operation != CREATE or request.kind not in WITH_FINALIZER or FINALIZER in finalizers:
        return ALLOWED
    metadata = {**request.object["metadata"], "finalizers": [*finalizers, FINALIZER]}
    return Verdict(json_patch(request.object, {**request.object, "metadata": metadata}))


def _validated(request: AdmissionRequest) -> Verdict:
    if request.old and as_submitted(request.old) == as_submitted(request.object):
        return ALLOWED  # an edit of the status or of finalizers alone is not validated again
    report = ValidationReport()
    new = _read(request, request.object, report)
    errors = [_field_error(each) for each in report.errors if each.reason != MistakeReason.UNKNOWN_FIELD]
    warnings = [str(each) for each in report.warnings]
    if not errors and request.old:
        errors = _frozen(request, new)
    return refused_fields(request, errors, warnings) if errors else Verdict(warnings=warnings)


def _read(request: AdmissionRequest, obj: JsonObject, report: ValidationReport) -> Any:
    version = request.api_version.rpartition("/")[2]
    top = FieldReader(report, "", as_submitted(obj))
    return KINDS[request.kind].read(top, version) if request.kind in KINDS else read_workload(top, version)


def _frozen(request: AdmissionRequest, new: Any) -> FieldErrors:
    if request.kind not in KINDS:
        return _frozen_of_workload(request)
    before = ValidationReport()
    old = _read(request, request.old, before)
    return [] if before.errors else _frozen_of_kind(KINDS[request.kind], old, new)


def _frozen_of_kind(kind: Kind, old: KindSpec, new: KindSpec) -> FieldErrors:
    return [
        invalid(field.path, new.values[field.name], "field is immutable")
        for field in kind.stored
        if field.refuses(old.values[field.name], new.values[field.name])
    ]


def _frozen_of_workload(request: AdmissionRequest) -> FieldErrors:
    """While it holds quota a workload's pods and queue stay as they are."""
    conditions = dig(request.old, "status", "conditions") or ()
    holds = any(
        each.get("type") == ConditionType.QUOTA_RESERVED and each.get("status") == ConditionStatus.TRUE
        for each in conditions
    )
    return [
        forbidden(f"spec.{name}", "field is immutable while the workload holds quota")
        for name in (_FROZEN_WITH_QUOTA if holds else ())
        if dig(request.old, "spec", name) != dig(request.object, "spec", name)
    ]


def _field_error(mistake: LocatedError) -> FieldError:
    kind = _TYPES.get(MistakeReason(mistake.reason), ErrorType.INVALID)
    detail = mistake.rule.removeprefix("Required value").lstrip(": ") if kind is ErrorType.REQUIRED else mistake.rule
    detail = f"{detail.rstrip('.')}. {mistake.remedy}" if mistake.remedy else detail
    value = "" if mistake.value is None else str(mistake.value)
    return FieldError(kind, mistake.path, detail.lstrip(". "), value)
