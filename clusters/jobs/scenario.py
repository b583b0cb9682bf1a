"""A scenario: a job in a cluster, what happens to it step by step, and what the rules make of that.

The cluster is an `ObjectStore`. Quota is given and taken by the scenario; everything else is done by the webhooks and
controllers of the kinds of jobs.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from clusters.jobs.framework import conditions as state
from clusters.jobs.framework.context import IntegrationSettings, JobContext
from clusters.jobs.framework.controller import reconcile
from clusters.jobs.framework.errors import FieldErrors, JobError
from clusters.jobs.framework.managed_job import ManagedJob
from clusters.jobs.framework.manifest import (
    JsonObject,
    dig,
    mapping_at,
    merge_patch,
    name_of,
    namespace_of,
    without_empty_texts,
)
from clusters.jobs.framework.pod_set_info import infos_of_admission
from clusters.jobs.framework.pod_sets import pod_defaults, requests_per_pod
from clusters.jobs.framework.store import ObjectStore
from clusters.jobs.registry import KINDS

NOW: Final = "2026-01-01T00:00:00Z"
_MAX_ROUNDS: Final = 50
"""A scenario that has not come to rest by then goes round in circles."""


class JobScenario:
    """One object, its cluster and its controllers."""

    def __init__(self, scenario: Mapping[str, Any]) -> None:
        config = scenario.get("config") or {}
        self.store = ObjectStore(scenario.get("cluster") or ())
        settings = IntegrationSettings(
            bool(config.get("manageJobsWithoutQueueName")),
            config.get("managedJobsNamespaceSelector"),
            bool(config.get("waitForPodsReady")),
            tuple(config.get("labelKeysToCopy") or ()),
        )
        self.context = JobContext(settings, self.store, KINDS, NOW)
        self.scenario = scenario

    def run(self) -> JsonObject:
        """All sections of the result."""
        obj = copy.deepcopy(self.scenario["object"])
        self.kind = KINDS[obj["apiVersion"], obj["kind"]]
        try:
            self.kind.default(obj, self.context)
        except JobError as refusal:
            return {"default": {"error": str(refusal)}}
        self.object = obj
        self.key = (obj["kind"], namespace_of(obj), name_of(obj))
        create = self._checked(self.kind.check_create, obj)
        result: JsonObject = {"default": {"object": self.kind.as_kept(obj)}, "create": create}
        if create["errors"]:
            return result
        states = self.scenario.get("states") or ()
        return {
            **result,
            "podSets": self._pod_sets(obj),
            "updates": [self._update(update) for update in self.scenario.get("updates") or ()],
            "states": [self._state(each["name"], merge_patch(obj, each["patch"])) for each in states],
            **self._life(obj),
        }

    # The webhooks

    def _checked(self, check: Callable[..., FieldErrors], *objects: JsonObject) -> JsonObject:
        try:
            found = check(*(copy.deepcopy(obj) for obj in objects), self.context)
        except JobError as refusal:
            return {"errors": [{"type": "Error", "detail": str(refusal)}], "warnings": 0}
        errors = [{"type": error.type.value, "field": error.field, "detail": error.detail} for error in found]
        return {"errors": errors, "warnings": self.kind.count_warnings(objects[-1], self.context)}

    def _update(self, update: JsonObject) -> JsonObject:
        old, new = (merge_patch(self.object, update[side]) for side in ("old", "new"))
        if self.kind.defaults_updates:
            new = copy.deepcopy(new)
            self.kind.default(new, self.context)
        return {"name": update["name"], **self._checked(self.kind.check_update, old, new)}

    # What the rules read

    def _pod_sets(self, obj: JsonObject) -> Any:
        try:
            return self.kind.pod_sets(copy.deepcopy(obj), self.context)
        except JobError as failure:
            return {"error": str(failure)}

    def _state(self, name: str, obj: JsonObject) -> JsonObject:
        kind = self.kind
        outcome = kind.outcome(obj)
        found = {
            "name": name,
            "finished": {"finished": outcome.finished, "success": outcome.success, "message": outcome.message},
            "podsReady": kind.pods_ready(obj, self.context),
            "active": kind.is_active(obj),
            "suspended": kind.is_suspended(obj),
            "reclaimablePods": kind.reclaimable_pods(obj, self.context),
            "onHold": kind.is_on_hold(obj),
            "skip": kind.is_skipped(obj),
            "podLabelSelector": kind.pod_label_selector(obj),
        }
        return {key: value for key, value in found.items() if value is not None}

    # Its life

    def _life(self, obj: JsonObject) -> JsonObject:
        self.store.write(obj)
        error = self._settle()
        requests = self._requests()
        steps = [self._snapshot("create", error), *(self._step(step) for step in self.scenario.get("steps") or ())]
        return {"requests": requests, "steps": steps}

    def _settle(self) -> str:
        """Lets the controllers run until nothing changes any more; what one of them has to complain of at the end."""
        failures: dict[tuple[str, ...], str] = {}
        for _ in range(_MAX_ROUNDS):
            before = self.store.writes
            for key, one_pass in self._passes():
                failures[key] = ""
                try:
                    one_pass()
                except JobError as failure:
                    failures[key] = str(failure)
            if self.store.writes == before:
                break
        return next((failure for failure in failures.values() if failure), "")

    def _passes(self) -> Iterator[tuple[tuple[str, ...], Callable[[], None]]]:
        kind, (_, namespace, name) = self.kind, self.key
        yield self.key, lambda: reconcile(ManagedJob(kind, namespace, name, self.context, self.store))

    def _requests(self) -> JsonObject:
        defaults = pod_defaults(self.store.list("LimitRange"), self.store.list("RuntimeClass"))
        return {
            name_of(workload): [
                {"name": pod_set["name"], "requests": requests_per_pod(namespace_of(workload), pod_set, defaults)}
                for pod_set in workload["spec"]["podSets"]
            ]
            for workload in self.store.list("Workload")
        }

    def _step(self, step: JsonObject) -> JsonObject:
        actions: Mapping[str, Callable[[JsonObject], JsonObject | None]] = {
            "admit": self._admit,
            "evict": self._evict,
            "patch": self._patch,
            "deleteWorkload": self._delete_workloads,
        }
        found = actions[step["op"]](step)
        return {**self._snapshot(step["op"], self._settle()), **(found or {})}

    def _snapshot(self, op: str, error: str) -> JsonObject:
        obj = self.store.get(*self.key)
        found: JsonObject = {
            "op": op,
            "object": self.kind.as_kept(obj) if obj is not None else None,
            "workloads": [_shown(workload) for workload in self.store.list("Workload")],
            "pods": [_shown(pod) for pod in self.store.list("Pod")],
        }
        return {**found, "error": error} if error else found

    def _admit(self, step: JsonObject) -> JsonObject:
        infos: JsonObject = {}
        for workload in self.store.list("Workload"):
            if state.is_finished(workload) or state.is_admitted(workload) or not state.is_active(workload):
                continue
            admit(workload, step)
            self.store.write(workload)
            try:
                added = infos_of_admission(workload, self.context)
            except JobError as conflict:
                infos[name_of(workload)] = {"error": str(conflict)}
            else:
                infos[name_of(workload)] = [info.to_json() for info in added]
        return {"podSetsInfo": infos}

    def _evict(self, step: JsonObject) -> None:
        for workload in self.store.list("Workload"):
            if state.has_quota(workload) and not state.is_finished(workload):
                state.set_condition(workload, state.EVICTED, True, step["reason"], step["message"], NOW)
                self.store.write(workload)

    def _patch(self, step: JsonObject) -> None:
        obj = self.store.get(*self.key)
        if obj is not None:
            self.store.write(merge_patch(obj, step["patch"]))

    def _delete_workloads(self, step: JsonObject) -> None:
        for workload in self.store.list("Workload"):
            self.store.delete(workload, NOW)


def admit(workload: JsonObject, step: JsonObject) -> None:
    """Gives a workload what a step says: quota, and all that goes with it."""
    status, entries = mapping_at(workload, "status"), step.get("podSets") or [{}]
    pod_sets = workload["spec"]["podSets"]
    assignments = []
    for index, pod_set in enumerate(pod_sets):
        entry = entries[min(index, len(entries) - 1)]
        count = min(entry.get("count", pod_set["count"]), pod_set["count"])
        assignment = {"name": pod_set["name"], "flavors": entry.get("flavors") or {}, "count": count}
        assignments.append({**assignment, **({"topologyAssignment": {}} if entry.get("topology") else {})})
    status["admission"] = {"clusterQueue": step["clusterQueue"], "podSetAssignments": assignments}
    status["admissionChecks"] = [_check_for(check, pod_sets) for check in step.get("admissionChecks") or ()]
    for kind in (state.QUOTA_RESERVED, state.ADMITTED):
        state.set_condition(workload, kind, True, kind, "admitted", NOW)
    if state.condition_of(workload, state.EVICTED) is not None:
        state.set_condition(workload, state.EVICTED, False, state.QUOTA_RESERVED, "quota reserved", NOW)


def _check_for(check: JsonObject, pod_sets: Sequence[JsonObject]) -> JsonObject:
    updates = zip(check.get("podSetUpdates") or (), pod_sets, strict=False)
    return {**check, "podSetUpdates": [{**update, "name": pod_set["name"]} for update, pod_set in updates]}


def _shown(obj: JsonObject) -> JsonObject:
    if obj["kind"] == "Workload":
        status = {key: dig(obj, "status", key) for key in ("conditions", "reclaimablePods")}
        return {"metadata": obj["metadata"], "spec": without_empty_texts(obj["spec"]), "status": status}
    return {key: without_empty_texts(obj.get(key)) for key in ("metadata", "spec", "status")}


def integrate(scenario: Mapping[str, Any]) -> JsonObject:
    """What becomes of the job of a scenario."""
    return JobScenario(scenario).run()
