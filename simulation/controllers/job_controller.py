"""The Job controller: suspended Jobs have no pods, running ones as many as they may, finished ones a verdict."""

from __future__ import annotations

from collections.abc import Iterable

from scheduling.model.times import parse_rfc3339
from simulation.api.objects import (
    JsonObject,
    annotations_of,
    condition,
    condition_is_true,
    is_deleting,
    labels_of,
    name_of,
    namespace_of,
    random_suffix,
    timestamp,
    uid_of,
    with_condition,
)
from simulation.api.pods import is_active, is_finished, is_ready, node_of, owned_pod, phase_of, pod_condition
from simulation.environment import Environment

_MANAGER = "kube-controller-manager"
TRACKING_FINALIZER = "batch.kubernetes.io/job-tracking"
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
_MAX_BACKOFF_SECONDS = 360.0
OWN_NAME = "kubernetes.io/job-controller"


class JobController:
    """batch/v1 Jobs. Finished pods are counted once, held by the tracking finalizer until they are."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def reconcile(self, namespace: str, name: str) -> float | None:
        job = self._environment.store.get("jobs", namespace, name)
        if job is None:
            self._untrack([pod for pod in self._environment.store.items("pods", namespace) if _was_of(pod, name)])
            return None
        if job["spec"].get("managedBy") not in (None, "", OWN_NAME):
            return None  # the object of another controller, such as one in another cluster
        pods = [pod for plural, pod in self._environment.store.owned_by(uid_of(job), "pods")]
        pods.sort(key=name_of)
        if is_deleting(job):
            self._untrack(pods)
            return None
        if _is_finished(job):
            self._delete(pod for pod in pods if is_active(pod))
            self._untrack(pods)
            return self._expire(job)
        status = self._count(job, pods)
        due = self._advance(job, status, pods)
        self._save(job, status)
        self._untrack(pods)
        return due

    def _count(self, job: JsonObject, pods: list[JsonObject]) -> JsonObject:
        """Return the status with newly finished pods added to its counters."""
        status = {**(job.get("status") or {})}
        succeeded, failed = status.get("succeeded", 0), status.get("failed", 0)
        done = _indexes(status.get("completedIndexes", ""))
        for pod in pods:
            if TRACKING_FINALIZER not in (pod["metadata"].get("finalizers") or ()):
                continue
            if phase_of(pod) == "Succeeded":
                succeeded += 1
                done.add(_index(pod))
            elif is_finished(pod) and not (is_deleting(pod) and job["spec"]["suspend"]):
                failed += 1
        if job["spec"]["completionMode"] == "Indexed":
            succeeded = len(done)
            status["completedIndexes"] = _format_indexes(done)
        status["succeeded"], status["failed"] = succeeded, failed
        return status

    def _advance(self, job: JsonObject, status: JsonObject, pods: list[JsonObject]) -> float | None:
        now = self._environment.now()
        active = [pod for pod in pods if is_active(pod)]
        due: float | None = None
        verdict = self._verdict(job, status, active, now)
        if verdict is not None:
            self._finish(status, *verdict)
            self._delete(active)
            active = []
        elif job["spec"]["suspend"]:
            self._suspend(status, active)
            active = []
        else:
            self._resume(status)
            due = self._scale(job, status, pods)
            pods = [pod for plural, pod in self._environment.store.owned_by(uid_of(job), "pods")]
            active = [pod for pod in pods if is_active(pod)]
        status["active"] = len(active)
        status["ready"] = sum(1 for pod in active if is_ready(pod))
        status["terminating"] = sum(1 for pod in pods if is_deleting(pod) and not is_finished(pod))
        return due

    def _verdict(
        self, job: JsonObject, status: JsonObject, active: list[JsonObject], now: float
    ) -> tuple[str, str, str] | None:
        spec = job["spec"]
        if status["failed"] > spec["backoffLimit"]:
            return "Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit"
        deadline = spec.get("activeDeadlineSeconds")
        started = status.get("startTime")
        if (
            deadline is not None
            and not spec["suspend"]
            and started
            and now >= parse_rfc3339(started) + self._environment.scaled(deadline)
        ):
            return "Failed", "DeadlineExceeded", "Job was active longer than specified deadline"
        completions = spec.get("completions")
        needed = 1 if completions is None else completions
        done = status["succeeded"] >= needed and (completions is not None or not active)
        if done:
            return "Complete", "CompletionsReached", "Reached expected number of succeeded pods"
        return None

    def _finish(self, status: JsonObject, kind: str, reason: str, message: str) -> None:
        now = self._environment.now()
        first = "SuccessCriteriaMet" if kind == "Complete" else "FailureTarget"
        for condition_type in (first, kind):
            entry = pod_condition(condition_type, True, now, reason, message)
            status["conditions"] = with_condition(list(status.get("conditions") or ()), entry)
        if kind == "Complete":
            status["completionTime"] = timestamp(now)

    def _suspend(self, status: JsonObject, active: list[JsonObject]) -> None:
        self._delete(active)
        if not _has(status, "Suspended", "True"):
            entry = pod_condition("Suspended", True, self._environment.now(), "JobSuspended", "Job suspended")
            status["conditions"] = with_condition(list(status.get("conditions") or ()), entry)

    def _resume(self, status: JsonObject) -> None:
        now = self._environment.now()
        status.setdefault("startTime", timestamp(now))
        if _has(status, "Suspended", "True"):
            status["startTime"] = timestamp(now)
            entry = pod_condition("Suspended", False, now, "JobResumed", "Job resumed")
            status["conditions"] = with_condition(list(status.get("conditions") or ()), entry)

    def _scale(self, job: JsonObject, status: JsonObject, pods: list[JsonObject]) -> float | None:
        """Creates or deletes pods up to what may run now; returns when a back-off or the deadline ends."""
        spec = job["spec"]
        active = [pod for pod in pods if is_active(pod)]
        completions = spec.get("completions")
        wanted = int(spec["parallelism"])
        if completions is not None:
            wanted = min(wanted, completions - status["succeeded"])
        elif status["succeeded"]:
            wanted = 0
        if len(active) > wanted:
            # A pod that the controller removes itself is not a failure: it is released before it is deleted.
            surplus = _to_remove(job, active, len(active) - wanted)
            for pod in surplus:
                self._let_go(pod)
            self._delete(surplus)
        due: float | None = None
        if spec.get("activeDeadlineSeconds") is not None:
            due = parse_rfc3339(status["startTime"]) + self._environment.scaled(spec["activeDeadlineSeconds"])
        missing = wanted - len(active)
        retry = self._retry_at(status, pods)
        if missing > 0 and retry is not None and self._environment.now() < retry:
            return retry if due is None else min(retry, due)
        for index in self._missing_indexes(job, status, active, missing):
            self._create_pod(job, index)
        return due

    def _retry_at(self, status: JsonObject, pods: list[JsonObject]) -> float | None:
        """After failures new pods wait, twice as long each time, from the last failure."""
        ends = [_ended_at(pod) for pod in pods if phase_of(pod) == "Failed"]
        if not status["failed"] or not ends:
            return None
        wait = min(self._environment.options.backoff_seconds * 2 ** (status["failed"] - 1), _MAX_BACKOFF_SECONDS)
        return max(ends) + self._environment.scaled(wait)

    def _missing_indexes(
        self, job: JsonObject, status: JsonObject, active: list[JsonObject], missing: int
    ) -> list[int | None]:
        if missing <= 0:
            return []
        if job["spec"]["completionMode"] != "Indexed":
            return [None] * missing
        taken = _indexes(status.get("completedIndexes", "")) | {_index(pod) for pod in active}
        free: list[int | None] = [index for index in range(job["spec"]["completions"]) if index not in taken]
        return free[:missing]

    def _create_pod(self, job: JsonObject, index: int | None) -> None:
        template = job["spec"]["template"]
        suffix = random_suffix(
            self._environment.registry.seed, uid_of(job), str(self._environment.store.resource_version)
        )
        if index is None:
            pod = owned_pod(job, template, f"{name_of(job)}-{suffix}")
        else:
            completion = {COMPLETION_INDEX: str(index)}
            pod = owned_pod(
                job, template, f"{name_of(job)}-{index}-{suffix}", labels=completion, annotations=completion
            )
            pod["spec"]["hostname"] = f"{name_of(job)}-{index}"
        pod["metadata"] |= {"generateName": f"{name_of(job)}-", "finalizers": [TRACKING_FINALIZER]}
        self._environment.create("pods", pod, _MANAGER)

    def _delete(self, pods: Iterable[JsonObject]) -> None:
        for pod in pods:
            self._environment.delete("pods", pod)

    def _save(self, job: JsonObject, status: JsonObject) -> None:
        live = self._environment.store.get("jobs", namespace_of(job), name_of(job))
        if live is not None and uid_of(live) == uid_of(job) and live.get("status") != status:
            self._environment.set_status("jobs", live, status, _MANAGER)

    def _untrack(self, pods: list[JsonObject]) -> None:
        """Release finished pods, which have been counted."""
        for old in pods:
            pod = self._environment.store.get("pods", namespace_of(old), name_of(old))
            if pod is not None and uid_of(pod) == uid_of(old) and is_finished(pod):
                self._let_go(pod)

    def _let_go(self, pod: JsonObject) -> None:
        finalizers = [entry for entry in pod["metadata"].get("finalizers") or () if entry != TRACKING_FINALIZER]
        if len(finalizers) != len(pod["metadata"].get("finalizers") or ()):
            self._environment.set_object(
                "pods", {**pod, "metadata": {**pod["metadata"], "finalizers": finalizers}}, _MANAGER
            )

    def _expire(self, job: JsonObject) -> float | None:
        seconds = job["spec"].get("ttlSecondsAfterFinished")
        if seconds is None:
            return None
        ended = max(
            parse_rfc3339(entry["lastTransitionTime"])
            for entry in job["status"]["conditions"]
            if entry["type"] in ("Complete", "Failed")
        )
        due = ended + self._environment.scaled(seconds)
        if self._environment.now() < due:
            return due
        self._environment.delete("jobs", job)
        return None


def _is_finished(job: JsonObject) -> bool:
    return condition_is_true(job, "Complete") or condition_is_true(job, "Failed")


def _has(status: JsonObject, kind: str, value: str) -> bool:
    return any(entry["type"] == kind and entry["status"] == value for entry in status.get("conditions") or ())


def _to_remove(job: JsonObject, active: list[JsonObject], count: int) -> list[JsonObject]:
    """Return the pods that end when fewer may run: of an Indexed Job those beyond its completions; then those that have
    progressed least, and among equals the youngest.
    """
    beyond: list[JsonObject] = []
    if job["spec"]["completionMode"] == "Indexed":
        beyond = [pod for pod in active if _index(pod) >= job["spec"]["completions"]]
    rest = sorted((pod for pod in active if pod not in beyond), key=_age, reverse=True)
    rest.sort(key=lambda pod: (bool(node_of(pod)), phase_of(pod) == "Running", is_ready(pod)))
    return [*beyond, *rest][: max(count, len(beyond))]


def _age(pod: JsonObject) -> tuple[str, int]:
    return pod["metadata"]["creationTimestamp"], int(pod["metadata"]["resourceVersion"])


def _was_of(pod: JsonObject, job: str) -> bool:
    return is_deleting(pod) and labels_of(pod).get("batch.kubernetes.io/job-name") == job


def _ended_at(pod: JsonObject) -> float:
    entry = condition(pod, "Ready") or {}
    return parse_rfc3339(entry.get("lastTransitionTime") or pod["metadata"]["creationTimestamp"])


def _index(pod: JsonObject) -> int:
    return int(annotations_of(pod).get(COMPLETION_INDEX, -1))


def _indexes(text: str) -> set[int]:
    """ "0-2,5" as a set."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def _format_indexes(indexes: set[int]) -> str:
    parts: list[str] = []
    run: list[int] = []
    for index in [*sorted(index for index in indexes if index >= 0), None]:
        if index is not None and run and index == run[-1] + 1:
            run.append(index)
            continue
        if run:
            parts.append(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}")
        run = [] if index is None else [index]
    return ",".join(parts)
