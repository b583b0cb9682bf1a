"""The rules of the webhook: Kueue's for jobs, HAMi's for pods with devices, and no start without an admission.

The rules for jobs are in `clusters.jobs`: the same ones apply to manifests and to recorded scenarios.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Final, Protocol

from clusters.jobs.framework.context import JobContext
from clusters.jobs.framework.errors import ErrorType, FieldError, FieldErrors, JobError, forbidden, invalid
from clusters.jobs.framework.identity import is_managed, is_queued, queue_name_of
from clusters.jobs.framework.job_kind import JobKind, Stopping
from clusters.jobs.framework.manifest import JsonObject, annotations_of, dig, labels_of, mapping_at, set_label
from clusters.jobs.objects import HAMI_KEEPS_AWAY, HAMI_WEBHOOK_LABEL, KUEUE_GATES, PLACEMENT_GATE, WORKLOAD_UID_LABEL
from clusters.jobs.owned_keys import SUBMITTED_BY
from clusters.jobs.submitter import NOTES
from clusters.webhook.json_patch import json_patch
from clusters.webhook.kueue_objects import KUEUE_PATHS, review_kueue_object
from clusters.webhook.reviews import (
    ALLOWED,
    CREATE,
    UPDATE,
    AdmissionRequest,
    Verdict,
    refused,
    refused_fields,
)
from clusters.webhook.volcano_objects import VALIDATE_FLOWS, review_flow
from foundation.exceptions import LimitReached
from queues.manifests import kueue_keys as keys
from scheduling.devices.requests.pod_completion import completed_pod
from scheduling.devices.requests.requests import pod_device_request
from scheduling.model.placement import DeviceRequestProblem
from scheduling.model.vendor import DeviceVendor

_GATES: Final = frozenset({PLACEMENT_GATE, *KUEUE_GATES})
_UNREADABLE: Final = (AttributeError, KeyError, TypeError, ValueError)
"""Errors that the rules raise if a field has another type than its kind gives it."""


class Standing(Enum):
    """The state of a job by its workloads' rows."""

    UNKNOWN = "unknown"
    WAITING = "waiting"
    ADMITTED = "admitted"


class Surroundings(Protocol):
    """The state of the cluster that the rules look up in addition to the request."""

    @property
    def trusted(self) -> frozenset[str]:
        """The names of the accounts with which kueueweb writes to the cluster."""

    def observes_only(self) -> bool:
        """Return whether kueueweb must not change any object in the cluster."""

    def serves_kueue(self) -> bool:
        """Return whether kueueweb serves Kueue's objects."""

    def context(self) -> JobContext: ...

    def vendors(self) -> Sequence[DeviceVendor]:
        """Return the vendors whose devices pods may get."""

    def standing(self, kind: JobKind, job: JsonObject) -> Standing: ...

    def submitter_notes(self, request: AdmissionRequest, job: JsonObject) -> Mapping[str, str]:
        """Return the annotations that name the job's submitter."""

    def submitter_of(self, job: JsonObject) -> str:
        """Return the submitter whom the job's annotations name; empty if they name none with a valid signature."""

    def policy_errors(self, request: AdmissionRequest, context: JobContext) -> FieldErrors:
        """Return the errors of the namespace's policy. Raises LimitReached."""


Rule = Callable[[AdmissionRequest, JobKind, JobContext], Verdict]


class Admission:
    """The rules, by the paths under which the webhook configurations name them."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings
        self._rules: Mapping[str, Rule] = {
            MUTATE_JOBS: self._default,
            MUTATE_PODS: self._complete_devices,
            VALIDATE_JOBS: self._validate,
            VALIDATE_STARTS: self._guard,
        }

    def review(self, path: str, request: AdmissionRequest) -> Verdict:
        """Answer a request under one of `PATHS`. kueueweb's own writes are allowed unchanged, because they follow from
        an admission; so is every write if kueueweb only observes."""
        rule = self._rules.get(path)
        if request.username in self._surroundings.trusted or self._surroundings.observes_only():
            return ALLOWED
        if path == VALIDATE_FLOWS:
            return review_flow(request)
        if rule is None:
            return review_kueue_object(path, request) if self._surroundings.serves_kueue() else ALLOWED
        context = self._surroundings.context()
        key = (request.api_version, request.kind)
        if key not in context.kinds or not context.is_enabled({"apiVersion": key[0], "kind": key[1]}):
            return ALLOWED
        kind = context.kinds[key]
        try:
            return rule(request, kind, context)
        except (JobError, LimitReached) as failure:
            return refused(str(failure))
        except _UNREADABLE as mistake:
            detail = f"is not the spec of a {kind.kind}: {type(mistake).__name__}: {mistake}"
            return refused_fields(request, [invalid("spec", "", f"{detail}. Compare it with the CRD of {kind.plural}")])

    def _default(self, request: AdmissionRequest, kind: JobKind, context: JobContext) -> Verdict:
        """Kueue's mutating webhook: queue, priority class, suspension, gates. And the note of the submitter."""
        if request.operation not in {CREATE, UPDATE}:
            return ALLOWED
        job = copy.deepcopy(request.object)
        if request.operation == CREATE or kind.defaults_updates:
            kind.default(job, context)
        if _is_entered(request, job, context):
            self._note_submitter(request, job, context)
        else:
            self._keep_submitter(request.old, job)
        return Verdict(json_patch(request.object, job))

    def _note_submitter(self, request: AdmissionRequest, job: JsonObject, context: JobContext) -> None:
        """Note the submitter, and remove a name that a user wrote there.

        A pod that waits at a gate of ours is noted before it is in a queue: only its submitter may put it into one.
        """
        is_noted = is_queued(job, context) or bool(_our_gates(job))
        notes = self._surroundings.submitter_notes(request, job) if is_noted else {}
        if notes or any(key in annotations_of(job) for key in NOTES):
            annotations = mapping_at(job, "metadata", "annotations")
            for key in NOTES:
                annotations.pop(key, None)
            annotations.update(notes)

    def _keep_submitter(self, old: JsonObject, job: JsonObject) -> None:
        """Put back the submitter's note if an update leaves it out or changes it, and add none.

        An update that replaces all annotations leaves it out. Operators change it: KubeRay gives the RayCluster of a
        RayService that service's annotations.
        """
        before, now = annotations_of(old), annotations_of(job)
        is_valid = bool(self._surroundings.submitter_of(old))
        for key in NOTES:
            if now.get(key) == before.get(key):
                continue
            annotations = mapping_at(job, "metadata", "annotations")
            if is_valid:
                annotations[key] = before[key]
            else:
                annotations.pop(key, None)

    def _forged_submitter(self, request: AdmissionRequest, kind: JobKind, context: JobContext) -> FieldErrors:
        """Return the errors of a note that names another user than the submitter, or that was changed since."""
        if kind.stopping is Stopping.DELETE and request.old:
            return self._forged_submitter_of_pod(request, context)
        now, before = annotations_of(request.object), annotations_of(request.old)
        if not is_queued(request.object, context) or now.get(SUBMITTED_BY) is None:
            return []
        if _is_entered(request, request.object, context):
            changed = [] if now[SUBMITTED_BY] == request.username else [SUBMITTED_BY]
        else:
            changed = [key for key in NOTES if key in now and now[key] != before.get(key)]
        rule = "is written only by the admission webhook. Leave it out of the manifest"
        return [forbidden(f"metadata.annotations[{key}]", rule) for key in changed]

    def _forged_submitter_of_pod(self, request: AdmissionRequest, context: JobContext) -> FieldErrors:
        """Return the errors of an edited pod, which no webhook mutates.

        Its note stays as it is; an invalid one may be removed. A pod that waits at a gate for its quota is put into a
        queue by its submitter only.
        """
        now, before = annotations_of(request.object), annotations_of(request.old)
        submitter = self._surroundings.submitter_of(request.old)
        changed = [key for key in NOTES if now.get(key) != before.get(key) and (submitter or key in now)]
        if changed:
            rule = "is written only by the admission webhook. Leave it as it is"
            return [forbidden(f"metadata.annotations[{key}]", rule) for key in changed]
        if not _our_gates(request.object) or not _is_entered(request, request.object, context):
            return []
        if submitter and submitter == request.username:
            return []
        rule = "is added to a waiting pod only by its submitter. Delete the pod, and create it with the label"
        return [forbidden(f"metadata.labels[{keys.QUEUE_NAME}]", rule)]

    def _validate(self, request: AdmissionRequest, kind: JobKind, context: JobContext) -> Verdict:
        """Apply Kueue's validating webhook and, to a job that breaks none of its rules, the rule about the submitter's
        annotations or else the namespace's policy."""
        job = copy.deepcopy(request.object)
        if request.operation == CREATE:
            errors = kind.check_create(job, context)
        elif request.operation == UPDATE:
            errors = kind.check_update(copy.deepcopy(request.old), job, context)
        else:
            return ALLOWED
        errors = errors or self._forged_submitter(request, kind, context)
        errors = errors or self._surroundings.policy_errors(request, context)
        warnings = kind.warnings(request.object, context)
        return refused_fields(request, errors, warnings) if errors else Verdict(warnings=warnings)

    def _complete_devices(self, request: AdmissionRequest, kind: JobKind, context: JobContext) -> Verdict:
        """Apply HAMi's mutating webhook to the pods that kueueweb places. A label keeps HAMi's own webhook away from
        them."""
        pod = request.object
        if request.operation != CREATE or kind.stopping is not Stopping.DELETE or not _is_placed_by_us(pod):
            return ALLOWED
        vendors = self._surroundings.vendors()
        asked = pod_device_request(pod, vendors)
        problems = [_field_error(problem) for problem in asked.problems if problem.refused]
        if problems:
            return refused_fields(request, problems)
        if not asked.asks_for_devices:
            return ALLOWED
        completed = copy.deepcopy(completed_pod(pod, vendors))
        set_label(completed, HAMI_WEBHOOK_LABEL, HAMI_KEEPS_AWAY)
        warnings = [str(problem) for problem in asked.problems]
        return Verdict(json_patch(pod, completed), warnings=warnings)

    def _guard(self, request: AdmissionRequest, kind: JobKind, context: JobContext) -> Verdict:
        """Refuse to start a waiting job or to remove a pod's gates unless it is admitted."""
        if request.operation != UPDATE:
            return ALLOWED
        if kind.stopping is Stopping.DELETE:
            return self._guard_gates(request)
        starts = kind.is_suspended(copy.deepcopy(request.old)) and not kind.is_suspended(copy.deepcopy(request.object))
        if kind.stopping is not Stopping.SUSPEND or not starts:
            return ALLOWED
        standing = self._surroundings.standing(kind, request.object)
        if standing is Standing.ADMITTED or (standing is Standing.UNKNOWN and not is_managed(request.object, context)):
            return ALLOWED
        rule = "changes only when the workload is admitted. Keep its value"
        return refused_fields(request, [forbidden(".".join(kind.suspend_path), rule)])

    def _guard_gates(self, request: AdmissionRequest) -> Verdict:
        gone = _our_gates(request.old) - _our_gates(request.object)
        if not gone or not (queue_name_of(request.old) or _is_placed_by_us(request.old)):
            return ALLOWED
        rule = f"{', '.join(sorted(gone))}: removed only when the workload is admitted. Keep it"
        return refused_fields(request, [forbidden("spec.schedulingGates", rule)])


MUTATE_JOBS: Final = "/mutate/jobs"
MUTATE_PODS: Final = "/mutate/pods"
VALIDATE_JOBS: Final = "/validate/jobs"
VALIDATE_STARTS: Final = "/validate/starts"
PATHS: Final = (MUTATE_JOBS, MUTATE_PODS, VALIDATE_JOBS, VALIDATE_STARTS, VALIDATE_FLOWS, *KUEUE_PATHS)


def _is_entered(request: AdmissionRequest, job: JsonObject, context: JobContext) -> bool:
    """Return whether the object is new, or an object that was in no queue is put into one by this request."""
    return not request.old or (is_queued(job, context) and not is_queued(request.old, context))


def _is_placed_by_us(pod: JsonObject) -> bool:
    """Return whether a pod is one of an admitted workload, or waits at a gate of its own."""
    labels = labels_of(pod)
    return WORKLOAD_UID_LABEL in labels or labels.get(keys.MANAGED) == "true" or bool(_our_gates(pod))


def _our_gates(pod: JsonObject) -> frozenset[str]:
    return frozenset(gate["name"] for gate in dig(pod, "spec", "schedulingGates") or ()) & _GATES


def _field_error(problem: DeviceRequestProblem) -> FieldError:
    where = f"spec.containers[{problem.container}]" if problem.container else ""
    field = f"{where}.{problem.resource}" if where else problem.resource
    return FieldError(ErrorType.INVALID, field, problem.message, problem.value)
