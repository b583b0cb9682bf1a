"""batch/v1 Job, including the Jobs of a CronJob."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from clusters.jobs.framework.conditions import is_true
from clusters.jobs.framework.context import MULTIKUEUE_CONTROLLER, JobContext
from clusters.jobs.framework.errors import FieldErrors, forbidden, invalid
from clusters.jobs.framework.go_syntax import BadSyntax, parse_boolean, parse_integer, to_int32
from clusters.jobs.framework.identity import is_elastic
from clusters.jobs.framework.job_kind import JobKind, Outcome, TemplateSite, integer_at
from clusters.jobs.framework.manifest import JsonObject, annotations_of, dig, mapping_at, name_of
from clusters.jobs.framework.pod_set_info import PodSetInfo, restore_template
from clusters.jobs.framework.pod_sets import MAIN
from clusters.jobs.framework.scheduling_gates import add_gate
from clusters.jobs.framework.topology import PodLabels, check_slice_bound, check_topology
from clusters.jobs.framework.validation import annotation_path, check_changed_job, check_new_job
from queues.manifests import kueue_keys as keys

JOB_NAME_LABEL: Final = "batch.kubernetes.io/job-name"
JOB_UID_LABEL: Final = "batch.kubernetes.io/controller-uid"
_OWN_LABELS: Final = ("job-name", "controller-uid", JOB_NAME_LABEL, JOB_UID_LABEL)
"""Labels that the Job controller puts on its own template."""
_PATH: Final = "spec.template.metadata"
_MINIMUM_PATH: Final = annotation_path(keys.MINIMUM_PARALLELISM)
_EQUAL_PATH: Final = annotation_path(keys.COMPLETIONS_EQUAL_PARALLELISM)
_SUSPENDED: Final = {
    "type": "Suspended", "status": "True", "reason": "JobSuspended", "message": "Job suspended",
}  # fmt: skip


class BatchJob(JobKind):
    """One pod set of parallelism pods; partial admission and slices are for this kind."""

    api_version = "batch/v1"
    kind = "Job"
    plural = "jobs"
    managed_by_path = ("spec", "managedBy")
    own_manager = "kubernetes.io/job-controller"
    optional = False
    restart_policies = ("Never", "OnFailure")
    spec_integers = ("parallelism", "completions")
    spec_fields = frozenset(
        {
            "activeDeadlineSeconds", "backoffLimit", "backoffLimitPerIndex", "completionMode", "completions",
            "managedBy", "manualSelector", "maxFailedIndexes", "parallelism", "podFailurePolicy",
            "podReplacementPolicy", "scheduling", "selector", "successPolicy", "suspend", "template",
            "ttlSecondsAfterFinished",
        }
    )  # fmt: skip
    pod_template_path = "spec.template"
    size_path = "spec.parallelism"
    elastic = True
    omitted_zeros = frozenset({"active", "succeeded", "failed"})
    checks_groups = False

    def prepare_for_worker(self, job: JsonObject) -> None:
        job["spec"].pop("selector", None)
        labels = dig(job, "spec", "template", "metadata", "labels") or {}
        for key in _OWN_LABELS:
            labels.pop(key, None)

    def fill_in(self, job: JsonObject) -> None:
        spec = mapping_at(job, "spec", "template", "spec")
        spec["restartPolicy"] = spec.get("restartPolicy") or self.restart_policies[0]

    def sites(self, job: JsonObject) -> list[TemplateSite]:
        template = mapping_at(job, "spec", "template")
        labels = PodLabels(keys.JOB_COMPLETION_INDEX)
        return [TemplateSite(MAIN, _count(job), template, _PATH, labels, _minimum(job))]

    def pod_sets(self, job: JsonObject, context: JobContext) -> list[JsonObject]:
        found = super().pod_sets(job, context)
        own = mapping_at(found[0]["template"], "metadata").get("labels") or {}
        for label in _OWN_LABELS:
            if label != JOB_NAME_LABEL:
                own.pop(label, None)
        return found

    def pod_label_selector(self, job: JsonObject) -> str:
        return f"{JOB_NAME_LABEL}={name_of(job)}"

    # Start and stop

    def is_suspended(self, job: JsonObject) -> bool:
        # A job that is stopping counts as running: its template is not restored yet.
        return super().is_suspended(job) and annotations_of(job).get(keys.STOPPING) != "true"

    def start(self, job: JsonObject, infos: Sequence[PodSetInfo], context: JobContext) -> None:
        if len(infos) == 1:
            self._set_count(job, infos[0].count)
        super().start(job, infos, context)

    def stop(self, job: JsonObject, infos: Sequence[PodSetInfo] | None) -> None:
        self.suspend(job)
        # The API server lets the template of a suspended Job be changed only while it has no start time.
        mapping_at(job, "status").pop("startTime", None)
        self.restore(job, infos or ())
        mapping_at(job, "metadata", "annotations").pop(keys.STOPPING, None)

    def restore(self, job: JsonObject, infos: Sequence[PodSetInfo]) -> None:
        if not infos:
            return
        self._set_count(job, infos[0].count)
        template = mapping_at(job, "spec", "template")
        own = dig(template, "metadata", "labels") or {}
        infos[0].labels |= {label: own[label] for label in _OWN_LABELS if label in own}
        restore_template(template, infos[0])

    def _set_count(self, job: JsonObject, count: int) -> None:
        if _minimum(job) is None:
            return
        spec = mapping_at(job, "spec")
        spec["parallelism"] = count
        if _completions_follow(job):
            spec["completions"] = count

    def is_stopped(self, job: JsonObject) -> bool:
        # Until the Job controller has seen the suspension, it may create another pod. A Job that was created suspended
        # has had no pod, and need not wait for that controller, which takes in about ten new Jobs a second.
        has_stopped = is_true(job, "Suspended") or _is_as_created(job)
        return super().is_stopped(job) and not integer_at(job, "status", "terminating") and has_stopped

    def status_before_change(self, job: JsonObject) -> JsonObject | None:
        started = bool(dig(job, "status", "startTime"))
        if dig(job, *self.managed_by_path) == MULTIKUEUE_CONTROLLER and (started or self.is_active(job)):
            # Its status is a copy from another cluster: no controller here would report that it is suspended.
            return {"startTime": None, "active": 0, "ready": 0, "terminating": 0, "conditions": [_SUSPENDED]}
        return {"startTime": None} if started else None

    def resize(self, job: JsonObject, sizes: JsonObject) -> None:
        for field in ("parallelism", "completions"):
            if dig(sizes, "spec", field) is not None:
                job["spec"][field] = sizes["spec"][field]

    # The status

    def outcome(self, job: JsonObject) -> Outcome:
        for condition in dig(job, "status", "conditions") or ():
            if condition.get("type") in ("Complete", "Failed") and condition.get("status") == "True":
                return Outcome(True, condition["type"] != "Failed", condition.get("message") or "")
        return Outcome(False)

    def is_active(self, job: JsonObject) -> bool:
        return integer_at(job, "status", "active") != 0

    def pods_ready(self, job: JsonObject, context: JobContext) -> bool:
        uncounted = dig(job, "status", "uncountedTerminatedPods", "succeeded") or ()
        done = integer_at(job, "status", "succeeded") + len(uncounted)
        return bool(done + integer_at(job, "status", "ready") >= _count(job))

    def reclaimable_pods(self, job: JsonObject, context: JobContext) -> list[JsonObject]:
        parallelism = integer_at(job, "spec", "parallelism", default=1)
        completions = integer_at(job, "spec", "completions", default=parallelism)
        done = _indexes_done(job, completions) if _is_indexed(job) else integer_at(job, "status", "succeeded")
        remaining = max(completions - done, 0)
        if parallelism <= 1 or done <= 0 or remaining >= parallelism:
            return []
        return [{"name": MAIN, "count": parallelism - remaining}]

    # The webhooks

    def complete(self, job: JsonObject, context: JobContext) -> None:
        if is_elastic(job):
            add_gate(mapping_at(job, "spec", "template"), keys.ELASTIC_JOB_GATE)

    def check_own(self, job: JsonObject, context: JobContext) -> FieldErrors:
        return [*_check_minimum(job), *_check_completions_follow(job)]

    def check_update(self, old: JsonObject, new: JsonObject, context: JobContext) -> FieldErrors:
        errors = [*check_new_job(self, new), *_check_completions_follow(new)]
        if _minimum_text(old) != _minimum_text(new):
            errors += _check_minimum(new)
        errors += check_changed_job(self, old, new, context)
        return list(dict.fromkeys([*errors, *self._check_changes(old, new), *self.check_topology(new, context)]))

    def _check_changes(self, old: JsonObject, new: JsonObject) -> FieldErrors:
        errors: FieldErrors = []
        counts = [integer_at(job, "spec", "parallelism", default=1) for job in (old, new)]
        running = dig(old, "spec", "suspend") is not True
        if _minimum_text(old) is not None and running and counts[0] != counts[1]:
            rule = "cannot change when partial admission is enabled and the job is not suspended"
            errors.append(forbidden("spec.parallelism", rule))
        both_run = not self.is_suspended(old) and not self.is_suspended(new)
        if both_run and _completions_follow(old) != _completions_follow(new):
            errors.append(forbidden(_EQUAL_PATH, "field is immutable while the job is not suspended"))
        return errors

    def check_topology(self, job: JsonObject, context: JobContext) -> FieldErrors:
        template = mapping_at(job, "spec", "template")
        errors = check_topology(_PATH, template)
        if errors:
            return errors
        if is_elastic(job):
            for mode, annotation in (("required", keys.REQUIRED_TOPOLOGY), ("preferred", keys.PREFERRED_TOPOLOGY)):
                if annotation in annotations_of(template):
                    rule = f"{mode} topology is not supported with elastic jobs"
                    return [forbidden(f"{_PATH}.annotations.{annotation}", rule)]
        pod_sets, failure = self.try_pod_sets(job, context)
        if failure is not None:
            raise failure
        return check_slice_bound(_PATH, template, pod_sets[0]["count"])


def _count(job: JsonObject) -> int:
    parallelism = integer_at(job, "spec", "parallelism", default=1)
    return min(parallelism, integer_at(job, "spec", "completions", default=parallelism))


def _is_indexed(job: JsonObject) -> bool:
    return bool(dig(job, "spec", "completionMode") == "Indexed")


def _minimum_text(job: JsonObject) -> str | None:
    return annotations_of(job).get(keys.MINIMUM_PARALLELISM)


def _minimum(job: JsonObject) -> int | None:
    """Return the minimum number of pods for partial admission; None if it is not requested."""
    text = _minimum_text(job)
    if text is None:
        return None
    try:
        return to_int32(parse_integer(text))
    except BadSyntax:
        return None


def _completions_follow(job: JsonObject) -> bool:
    """Return whether completions change with parallelism."""
    try:
        return parse_boolean(annotations_of(job).get(keys.COMPLETIONS_EQUAL_PARALLELISM, "false"))
    except BadSyntax:
        return False


def _check_minimum(job: JsonObject) -> FieldErrors:
    text = _minimum_text(job)
    if text is None:
        return []
    errors: FieldErrors = []
    try:
        minimum = parse_integer(text)
        if minimum <= 0 or to_int32(minimum) >= _count(job):
            errors.append(invalid(_MINIMUM_PATH, minimum, f"should be between 0 and {_count(job) - 1}"))
    except BadSyntax as mistake:
        errors.append(invalid(_MINIMUM_PATH, text, str(mistake)))
    if is_elastic(job):
        errors.append(invalid(_MINIMUM_PATH, text, "partial admission and elastic job cannot be used together"))
    return errors


def _check_completions_follow(job: JsonObject) -> FieldErrors:
    text = annotations_of(job).get(keys.COMPLETIONS_EQUAL_PARALLELISM)
    if text is None:
        return []
    try:
        if not parse_boolean(text):
            return []
    except BadSyntax as mistake:
        return [invalid(_EQUAL_PATH, text, str(mistake))]
    errors: FieldErrors = []
    if not _is_indexed(job):
        errors.append(invalid(_EQUAL_PATH, text, "should not be enabled for NonIndexed jobs"))
    completions = dig(job, "spec", "completions")
    if integer_at(job, "spec", "parallelism", default=1) != integer_at(job, "spec", "completions", default=1):
        rule = f"should be equal to parallelism when {keys.COMPLETIONS_EQUAL_PARALLELISM} annotation is true"
        errors.append(invalid("spec.completions", completions, rule))
    return errors


def _indexes_done(job: JsonObject, completions: int) -> int:
    """Return the number of indexes below `completions` that have ended, successfully or not."""
    done: set[int] = set()
    for field in ("completedIndexes", "failedIndexes"):
        for interval in str(dig(job, "status", field) or "").split(","):
            first, last = _interval(interval)
            done.update(range(first, min(last, completions - 1) + 1))
    return len(done)


def _interval(text: str) -> tuple[int, int]:
    """Return the indexes of `3` or `3-5`; none if malformed."""
    first, dash, last = text.partition("-")
    try:
        return parse_integer(first), parse_integer(last if dash else first)
    except BadSyntax:
        return 0, -1


def _is_as_created(job: JsonObject) -> bool:
    """Return whether the spec is still the first one: each change of it raises the generation."""
    return integer_at(job, "metadata", "generation") == 1
