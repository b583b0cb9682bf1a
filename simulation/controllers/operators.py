"""The operators of the kinds of jobs that are no part of Kubernetes: pods for every template, and a status.

One controller serves all of them; a kind has its own way to report.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from clusters.jobs.framework.context import IntegrationSettings, JobContext
from clusters.jobs.framework.errors import JobError
from clusters.jobs.framework.job_kind import JobKind, TemplateSite
from clusters.jobs.framework.manifest import dig
from clusters.jobs.registry import KINDS
from simulation.api.objects import (
    JsonObject,
    condition_is_true,
    is_deleting,
    name_of,
    timestamp,
    uid_of,
)
from simulation.api.pods import is_active, is_finished, is_ready, owned_pod, phase_of
from simulation.api.resources import RESOURCES
from simulation.environment import Environment

_POD_SET: Final = "kueueweb.io/simulated-pod-set"
"""The label by which a controller counts the pods of a template."""
_PLURALS: Final = {resource.kind: resource.plural for resource in RESOURCES}


class Stored:
    """The cluster's objects, for the rules of kinds of jobs."""

    def __init__(self, environment: Environment) -> None:
        self._store = environment.store

    def get(self, kind: str, namespace: str, name: str) -> JsonObject | None:
        return self._store.get(_PLURALS.get(kind, ""), namespace, name)

    def list(self, kind: str, namespace: str = "") -> list[JsonObject]:
        return [*self._store.items(_PLURALS.get(kind, ""), namespace)]


@dataclass(slots=True)
class Tally:
    """The pods of one template. `existing` counts those that are being deleted too."""

    name: str
    wanted: int
    existing: int = 0
    active: int = 0
    ready: int = 0
    succeeded: int = 0
    failed: int = 0


class OperatedJobController:
    """Runs the jobs of one kind: each pod once, all of them at the same time. One that fails fails the job.

    A kind that serves gets another pod for each that ends.
    """

    def __init__(self, environment: Environment, rules: JobKind) -> None:
        self._environment = environment
        self._rules = rules
        self._manager = f"{rules.kind.lower()}-operator"
        self._report = REPORTS[rules.kind]
        self._context = JobContext(IntegrationSettings(), Stored(environment), KINDS)

    def reconcile(self, namespace: str, name: str) -> float | None:
        job = self._environment.store.get(self._rules.plural, namespace, name)
        if job is None or is_deleting(job) or self._is_anothers(job):
            return None
        content = copy.deepcopy(job)
        try:
            sites = self._rules.run_sites(content, self._context)
        except JobError:
            return None  # an object that it refers to does not exist yet
        suspended = self._rules.is_suspended(job)
        ended = self._rules.outcome(job).finished
        pods = self._pods(job)
        if suspended or (ended and not _keeps_pods(self._rules.kind, job)):
            for pod in pods:
                if is_active(pod):
                    self._environment.delete("pods", pod)
        elif not ended:
            self._make_missing(job, content, sites, {name_of(pod) for pod in pods})
            self._remove_others(job, sites, pods)
        if not ended:
            tallies = [self._tally(site, self._pods(job)) for site in sites]
            status = {**(job.get("status") or {}), **self._report(job, tallies, suspended, self._environment.now())}
            if status != job.get("status"):
                self._environment.set_status(self._rules.plural, job, status, self._manager)
        return None

    def _is_anothers(self, job: JsonObject) -> bool:
        """Return whether another controller manages the job, in another cluster for example."""
        path = self._rules.managed_by_path
        return bool(path) and dig(job, *path) not in (None, "", self._rules.own_manager)

    def _pods(self, job: JsonObject) -> list[JsonObject]:
        return [pod for _, pod in self._environment.store.owned_by(uid_of(job), "pods")]

    def _make_missing(self, job: JsonObject, content: JsonObject, sites: list[TemplateSite], there: set[str]) -> None:
        injected = _injected(content)
        for number, site in enumerate(sites):
            for index, name in enumerate(_pod_names(job, site)):
                if name not in there:
                    more = injected[number] if number < len(injected) else {}
                    pod = _pod(job, site, name, index, more, serves=self._rules.serves)
                    self._environment.create("pods", pod, self._manager)

    def _remove_others(self, job: JsonObject, sites: list[TemplateSite], pods: list[JsonObject]) -> None:
        """Delete the pods that a smaller job no longer needs, and those in whose place others are to serve."""
        wanted = {name for site in sites for name in _pod_names(job, site)}
        for pod in pods:
            if name_of(pod) in wanted:
                is_superfluous = self._rules.serves and is_finished(pod) and not is_deleting(pod)
            else:
                is_superfluous = is_active(pod)
            if is_superfluous:
                self._environment.delete("pods", pod)

    @staticmethod
    def _tally(site: TemplateSite, pods: list[JsonObject]) -> Tally:
        tally = Tally(site.name, site.count)
        for pod in pods:
            if (pod["metadata"].get("labels") or {}).get(_POD_SET) != site.name.lower():
                continue
            tally.existing += 1
            tally.active += is_active(pod)
            tally.ready += is_active(pod) and is_ready(pod)
            tally.succeeded += phase_of(pod) == "Succeeded"
            tally.failed += phase_of(pod) == "Failed" and not is_deleting(pod)
        return tally


def _keeps_pods(kind: str, job: JsonObject) -> bool:
    """Return whether the pods of a job that has ended run on: Kubeflow's operators keep them by default."""
    return kind in _LEADERS and (dig(job, "spec", "runPolicy", "cleanPodPolicy") or "None") == "None"


def _pod_names(job: JsonObject, site: TemplateSite) -> list[str]:
    return [f"{name_of(job)}-{site.name.lower()}-{index}"[-63:].lstrip("-.") for index in range(site.count)]


def _injected(content: JsonObject) -> list[JsonObject]:
    """Return the fields that a wrapper merges into the templates of the wrapped objects, per pod set."""
    components = (content.get("spec") or {}).get("components") or ()
    return [info for component in components for info in component.get("podSetInfos") or ()]


def _pod(
    job: JsonObject, site: TemplateSite, name: str, index: int, more: Mapping[str, Any], *, serves: bool
) -> JsonObject:
    labels = {**(more.get("labels") or {}), _POD_SET: site.name.lower()}
    if site.labels.pod_index:
        labels[site.labels.pod_index] = str(index)
    pod = owned_pod(job, site.template, name, labels=labels, annotations=more.get("annotations"))
    spec = pod["spec"]
    spec["restartPolicy"] = "Always" if serves else "Never"
    if image := (job.get("spec") or {}).get("image"):  # Spark names one image for all roles
        for container in spec.get("containers") or ():
            container.setdefault("image", image)
    for field in ("tolerations", "schedulingGates"):
        if more.get(field):
            spec[field] = [*(spec.get(field) or ()), *more[field]]
    if more.get("nodeSelector"):
        spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), **more["nodeSelector"]}
    return pod


Report = Callable[[JsonObject, list[Tally], bool, float], JsonObject]


def _is_done(tallies: list[Tally]) -> bool:
    return bool(tallies) and all(tally.succeeded >= tally.wanted for tally in tallies)


def _has_failed(tallies: list[Tally]) -> bool:
    return any(tally.failed for tally in tallies)


def _all_ready(tallies: list[Tally]) -> bool:
    return all(tally.ready + tally.succeeded >= tally.wanted for tally in tallies)


def _conditions(job: JsonObject, now: float, **states: bool) -> list[JsonObject]:
    """Return the job's conditions with these; one that has not changed keeps its time."""
    known = {entry["type"]: entry for entry in (job.get("status") or {}).get("conditions") or ()}
    for kind, state in states.items():
        if not state and kind not in known:
            continue
        if kind not in known or condition_is_true(job, kind) != state:
            value = "True" if state else "False"
            known[kind] = {
                "type": kind, "status": value, "reason": kind, "message": f"{kind}: {value}",
                "lastTransitionTime": timestamp(now),
            }  # fmt: skip
    return list(known.values())


def _report_jobset(job: JsonObject, tallies: list[Tally], suspended: bool, now: float) -> JsonObject:
    done, failed = _is_done(tallies), _has_failed(tallies)
    by_name = {tally.name: tally for tally in tallies}
    statuses = []
    for replicated in job["spec"].get("replicatedJobs") or ():
        tally, replicas = by_name[replicated["name"]], int(replicated.get("replicas") or 0)
        per_replica = max(tally.wanted // replicas, 1) if replicas else 1
        statuses.append(
            {
                "name": tally.name,
                "active": -(-tally.active // per_replica),
                "ready": tally.ready // per_replica,
                "succeeded": tally.succeeded // per_replica,
                "failed": int(tally.failed > 0),
                "suspended": replicas if suspended else 0,
            }
        )
    conditions = _conditions(job, now, Completed=done, Failed=failed, Suspended=suspended)
    return {"replicatedJobsStatus": statuses, "conditions": conditions}


def _report_train_job(job: JsonObject, tallies: list[Tally], suspended: bool, now: float) -> JsonObject:
    done, failed = _is_done(tallies), _has_failed(tallies)
    statuses = [
        {
            "name": tally.name,
            "active": int(tally.active > 0),
            "ready": int(tally.ready == tally.wanted),
            "succeeded": int(tally.succeeded == tally.wanted),
            "failed": int(tally.failed > 0),
            "suspended": int(suspended),
        }
        for tally in tallies
    ]
    conditions = _conditions(job, now, Complete=done, Failed=failed, Suspended=suspended)
    return {"jobsStatus": statuses, "conditions": conditions}


_LEADERS: Final[Mapping[str, tuple[str, ...]]] = {
    "PyTorchJob": ("Master",),
    "TFJob": ("Chief", "Master"),
    "XGBoostJob": ("Master",),
    "PaddleJob": ("Master",),
    "JAXJob": (),
    "MPIJob": ("Launcher",),
}
"""The kinds of Kubeflow's operators, and the roles whose pods tell whether a job runs and has succeeded. In a job
without these roles, all roles count.
"""


def _report_replicas(kind: str, job: JsonObject, tallies: list[Tally], suspended: bool, now: float) -> JsonObject:
    """Report by training-operator v1.9 and mpi-operator v0.8: an MPIJob runs if all pods do, ends by its launcher."""
    leading = [tally for tally in tallies if tally.name in _LEADERS[kind]] or tallies
    is_mpi = kind == "MPIJob"
    done, failed = _is_done(leading), _has_failed(leading if is_mpi else tallies)
    started = _all_ready(tallies) if is_mpi else any(tally.ready for tally in leading)
    running = not suspended and not done and not failed and (started or condition_is_true(job, "Running"))
    states = {"Created": True, "Running": running, "Suspended": suspended, "Succeeded": done, "Failed": failed}
    return {
        "replicaStatuses": _replica_statuses(job, tallies, suspended),
        "conditions": _conditions(job, now, **states),
    }


def _replica_statuses(job: JsonObject, tallies: list[Tally], suspended: bool) -> JsonObject:
    """Return the pods by role; of a suspended job those that it had, none of them active."""
    if suspended:
        known: JsonObject = (job.get("status") or {}).get("replicaStatuses") or {}
        return {role: {**status, "active": 0} for role, status in known.items()}
    return {
        tally.name: {"active": tally.active, "succeeded": tally.succeeded, "failed": tally.failed} for tally in tallies
    }


def _report_ray_cluster(job: JsonObject, tallies: list[Tally], suspended: bool, now: float) -> JsonObject:
    """Report by KubeRay v1.5: the state stays until all pods run, or none is left of a suspended cluster."""
    known = dig(job, "status", "state") or ""
    if suspended:
        return {"state": known if any(tally.existing for tally in tallies) else "suspended"}
    return {"state": "ready" if _all_ready(tallies) else known}


def _report_ray_job(job: JsonObject, tallies: list[Tally], suspended: bool, now: float) -> JsonObject:
    """Report by KubeRay v1.5: a suspended job has neither a cluster nor a state of its program."""
    if suspended and any(tally.existing for tally in tallies):
        return {"jobDeploymentStatus": "Suspending"}
    if suspended:
        return {
            "jobDeploymentStatus": "Suspended", "jobStatus": "", "rayClusterStatus": {"state": ""},
            "rayClusterName": "",
        }  # fmt: skip
    known = job.get("status") or {}
    is_ready = dig(known, "rayClusterStatus", "state") == "ready" or _all_ready(tallies)
    cluster = {"state": "ready" if is_ready else ""}
    if _is_done(tallies):
        state, outcome = "Complete", "SUCCEEDED"
    elif _has_failed(tallies):
        state, outcome = "Failed", "FAILED"
    else:
        state, outcome = ("Running", "RUNNING") if is_ready else ("Initializing", "")
    return {
        "jobDeploymentStatus": state, "jobStatus": outcome, "rayClusterStatus": cluster,
        "rayClusterName": f"{name_of(job)}-cluster",
    }  # fmt: skip


def _report_ray_service(job: JsonObject, tallies: list[Tally], suspended: bool, now: float) -> JsonObject:
    return {"conditions": _conditions(job, now, Ready=not suspended and _all_ready(tallies))}


def _report_app_wrapper(job: JsonObject, tallies: list[Tally], suspended: bool, now: float) -> JsonObject:
    active = any(tally.active for tally in tallies)
    done, failed = _is_done(tallies), _has_failed(tallies)
    if suspended:
        phase = "Suspending" if active else "Suspended"
    else:
        phase = "Succeeded" if done else "Failed" if failed else "Running"
    ended = phase in ("Succeeded", "Failed")
    conditions = _conditions(
        job,
        now,
        QuotaReserved=(not suspended or active) and not ended,
        ResourcesDeployed=not suspended and not failed,
        PodsReady=not suspended and _all_ready(tallies),
    )
    return {"phase": phase, "conditions": conditions}


def _report_spark(job: JsonObject, tallies: list[Tally], suspended: bool, now: float) -> JsonObject:
    if suspended:
        state = "SUSPENDING" if any(tally.active for tally in tallies) else "SUSPENDED"
    elif _has_failed(tallies):
        state = "FAILED"
    else:
        state = "COMPLETED" if _is_done(tallies) else "RUNNING"
    executors = next((tally for tally in tallies if tally.name == "executor"), Tally("executor", 0))
    running = {f"{name_of(job)}-exec-{index}": "RUNNING" for index in range(executors.ready)}
    driver = {"podName": f"{name_of(job)}-driver"}
    return {"applicationState": {"state": state}, "driverInfo": driver, "executorState": running}


REPORTS: Final[Mapping[str, Report]] = {
    "JobSet": _report_jobset,
    "TrainJob": _report_train_job,
    **{kind: partial(_report_replicas, kind) for kind in _LEADERS},
    "RayCluster": _report_ray_cluster,
    "RayJob": _report_ray_job,
    "RayService": _report_ray_service,
    "AppWrapper": _report_app_wrapper,
    "SparkApplication": _report_spark,
}
"""How each operator writes the status of its jobs."""
