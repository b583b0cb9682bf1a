"""A scenario: a job in a cluster, the events step by step, and the results by the rules.

The cluster is an `ObjectStore`. Quota is given and taken by the scenario; everything else is done by the webhooks and
controllers of the kinds of jobs.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from clusters.jobs.families.serving import ServingKind
from clusters.jobs.framework import conditions as state
from clusters.jobs.framework.context import IntegrationSettings, JobContext
from clusters.jobs.framework.controller import reconcile
from clusters.jobs.framework.errors import FieldErrors, JobError
from clusters.jobs.framework.job_kind import JobKind
from clusters.jobs.framework.managed_job import ManagedJob
from clusters.jobs.framework.manifest import (
    JsonObject,
    dig,
    mapping_at,
    name_of,
    namespace_of,
    without_empty_texts,
)
from clusters.jobs.framework.pod_set_info import infos_of_admission
from clusters.jobs.framework.pod_sets import pod_defaults, requests_per_pod
from clusters.jobs.framework.store import ObjectStore
from clusters.jobs.kinds.pod import ManagedPod, Pod, group_name_of
from clusters.jobs.kinds.pod_group import PodGroup
from clusters.jobs.registry import KINDS
from scheduling.manifest.merge_patch import merge_patch
from scheduling.model.selectors import LabelSelector

NOW: Final = "2026-01-01T00:00:00Z"
_MAX_ROUNDS: Final = 50
"""A scenario that has not settled after this many rounds runs in circles."""


def context_of_scenario(scenario: Mapping[str, Any], store: ObjectStore) -> JobContext:
    """Return the settings of a scenario, and the objects in its cluster."""
    config = scenario.get("config") or {}
    wanted = config.get("managedJobsNamespaceSelector")
    settings = IntegrationSettings(
        bool(config.get("manageJobsWithoutQueueName")),
        None if wanted is None else LabelSelector(wanted),
        bool(config.get("waitForPodsReady")),
        tuple(config.get("labelKeysToCopy") or ()),
    )
    return JobContext(settings, store, KINDS, NOW)


class JobScenario:
    """One object, its cluster and its controllers."""

    def __init__(self, scenario: Mapping[str, Any]) -> None:
        self.store = ObjectStore(scenario.get("cluster") or ())
        self.context = context_of_scenario(scenario, self.store)
        self.scenario = scenario

    def run(self) -> JsonObject:
        """Return all sections of the result."""
        obj = copy.deepcopy(self.scenario["object"])
        self.kind = KINDS[obj["apiVersion"], obj["kind"]]
        try:
            self.kind.default(obj, self.context)
        except JobError as refusal:
            return {"default": {"error": str(refusal)}}
        self.object = obj
        self.key = (obj["kind"], namespace_of(obj), name_of(obj))
        create = self._checked(self.kind, self.kind.check_create, obj)
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

    def _checked(self, kind: JobKind, check: Callable[..., FieldErrors], *objects: JsonObject) -> JsonObject:
        try:
            found = check(*(copy.deepcopy(obj) for obj in objects), self.context)
        except JobError as refusal:
            return {"errors": [{"type": "Error", "detail": str(refusal)}], "warnings": 0}
        errors = [{"type": error.type.value, "field": error.field, "detail": error.detail} for error in found]
        return {"errors": errors, "warnings": len(kind.warnings(objects[-1], self.context))}

    def _update(self, update: JsonObject) -> JsonObject:
        old, new = (merge_patch(self.object, update[side]) for side in ("old", "new"))
        if self.kind.defaults_updates:
            new = copy.deepcopy(new)
            self.kind.default(new, self.context)
        return {"name": update["name"], **self._checked(self.kind, self.kind.check_update, old, new)}

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
        """Runs the controllers until nothing changes any more; returns the last complaint of one of them."""
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
        if isinstance(kind, ServingKind):
            yield self.key, lambda: kind.reconcile(namespace, name, self.context, self.store)
        elif not isinstance(kind, Pod):
            yield self.key, lambda: reconcile(ManagedJob(kind, namespace, name, self.context, self.store))
        yield from self._pod_passes()

    def _pod_passes(self) -> Iterator[tuple[tuple[str, ...], Callable[[], None]]]:
        """Yield the controller of pods, for every group and every pod without one, in the order of the pods' names."""
        seen = set()
        for pod in sorted(self.store.list("Pod"), key=name_of):
            group, namespace = group_name_of(pod), namespace_of(pod)
            key = ("PodGroup", namespace, group) if group else ("Pod", namespace, name_of(pod))
            if key not in seen:
                seen.add(key)
                yield key, partial(self._reconcile_pods, *key)

    def _reconcile_pods(self, kind: str, namespace: str, name: str) -> None:
        if kind == "PodGroup":
            reconcile(PodGroup(namespace, name, self.context, self.store))
        else:
            reconcile(ManagedPod(Pod(), namespace, name, self.context, self.store))

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
            "createPods": self._create_pods,
            "patchPod": self._patch_pod,
            "deletePod": self._delete_pod,
        }
        found = actions[step["op"]](step)
        return {**self._snapshot(step["op"], self._settle()), **(found or {})}

    def _snapshot(self, op: str, error: str) -> JsonObject:
        obj = self.store.get(*self.key)
        found: JsonObject = {
            "op": op,
            "object": self.kind.as_kept(obj) if obj is not None else None,
            "workloads": [_shown(workload) for workload in self.store.list("Workload")],
            "pods": self._shown_pods(),
        }
        return {**found, "error": error} if error else found

    def _shown_pods(self) -> list[JsonObject]:
        # A single pod is shown once with its kind, as the object; other pods are shown only here.
        pods = self.store.list("Pod")
        return (
            [_shown(pod) for pod in pods] if self.key[0] == "Pod" else [KINDS["v1", "Pod"].as_kept(pod) for pod in pods]
        )

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

    def _create_pods(self, step: JsonObject) -> JsonObject:
        made = []
        for entry in step["pods"]:
            pod = self._pod_of(entry)
            if pod is not None:
                made.append({"name": name_of(pod), **self._make_pod(pod)})
        return {"made": made}

    def _pod_of(self, entry: JsonObject) -> JsonObject | None:
        """Return the pod of a step, built from a template of the object if the step says so."""
        path = entry.get("fromTemplate")
        rest = {key: value for key, value in entry.items() if key != "fromTemplate"}
        if path is None:
            return rest
        template = dig(self.store.get(*self.key) or {}, *path.split("."))
        if template is None:
            return None
        metadata = {key: dig(template, "metadata", key) or {} for key in ("labels", "annotations")}
        made: JsonObject = merge_patch({"metadata": metadata, "spec": template.get("spec") or {}}, rest)
        return made

    def _make_pod(self, pod: JsonObject) -> JsonObject:
        """Sends a pod through the webhooks and, if they accept it, into the cluster."""
        kind = KINDS["v1", "Pod"]
        pod = copy.deepcopy(pod)
        try:
            kind.default(pod, self.context)
        except JobError as refusal:
            return {"error": str(refusal)}
        checked = self._checked(kind, kind.check_create, pod)
        if not checked["errors"]:
            self.store.write(pod)
        return {"object": kind.as_kept(pod), **checked}

    def _patch_pod(self, step: JsonObject) -> None:
        pod = self._pod_named(step["pod"])
        if pod is not None:
            self.store.write(merge_patch(pod, step["patch"]))

    def _delete_pod(self, step: JsonObject) -> None:
        pod = self._pod_named(step["pod"])
        if pod is not None:
            self.store.delete(pod, NOW)

    def _pod_named(self, name: str) -> JsonObject | None:
        return next((pod for pod in self.store.list("Pod") if name_of(pod) == name), None)

    def _delete_workloads(self, step: JsonObject) -> None:
        for workload in self.store.list("Workload"):
            self.store.delete(workload, NOW)


def admit(workload: JsonObject, step: JsonObject) -> None:
    """Gives a workload the quota of a step, with everything that follows."""
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


class PodGroupScenario(JobScenario):
    """Pods that are created together and are one workload."""

    key = ("PodGroup", "", "")

    def run(self) -> JsonObject:
        """Return all sections of the result; those of the webhooks pod by pod."""
        made = [(name_of(pod), self._make_pod(pod)) for pod in self.scenario["pods"]]
        self.pods = {name: found["object"] for name, found in made if not found.get("errors", True)}
        default = [
            {"name": name, **({"error": found["error"]} if "error" in found else {"object": found["object"]})}
            for name, found in made
        ]
        create = [
            {"name": name, "errors": found["errors"], "warnings": found["warnings"]}
            for name, found in made
            if "errors" in found
        ]
        updates = [
            self._update_pod(update) for update in self.scenario.get("updates") or () if update["pod"] in self.pods
        ]
        error = self._settle()
        requests = self._requests()
        steps = [self._snapshot("create", error), *(self._step(step) for step in self.scenario.get("steps") or ())]
        states = [self._group_state(each) for each in self.scenario.get("states") or ()] if self.pods else []
        return {
            "default": default, "create": create, "updates": updates, "requests": requests, "steps": steps,
            "states": states,
        }  # fmt: skip

    def _passes(self) -> Iterator[tuple[tuple[str, ...], Callable[[], None]]]:
        yield from self._pod_passes()

    def _update_pod(self, update: JsonObject) -> JsonObject:
        kind = KINDS["v1", "Pod"]
        old, new = (merge_patch(self.pods[update["pod"]], update[side]) for side in ("old", "new"))
        return {"name": update["name"], "pod": update["pod"], **self._checked(kind, kind.check_update, old, new)}

    def _group_state(self, patched: JsonObject) -> JsonObject:
        """Return how the group's status reads with other pods than there are."""
        pods = [merge_patch(pod, patched["pods"].get(name, {})) for name, pod in self.pods.items()]
        namespace, group_name = namespace_of(pods[0]), group_name_of(pods[0])
        others = [obj for obj in self.scenario.get("cluster") or () if obj["kind"] != "Pod"]
        store = ObjectStore([*others, *pods])
        group = PodGroup(namespace, group_name, replace(self.context, objects=store), store)
        outcome = group.outcome()
        found: JsonObject = {
            "name": patched["name"],
            "finished": {"finished": outcome.finished, "success": outcome.success, "message": outcome.message},
            "podsReady": group.pods_ready(),
            "active": group.is_active(),
            "suspended": group.is_suspended(),
            "reclaimablePods": group.reclaimable_pods(),
            "skip": group.is_skipped(),
            "podLabelSelector": group.kind.pod_label_selector(group.object),
        }
        try:
            found["podSets"] = [{"name": each["name"], "count": each["count"]} for each in group.pod_sets()]
        except JobError as failure:
            found["podSets"] = {"error": str(failure)}
        return found


def integrate(scenario: Mapping[str, Any]) -> JsonObject:
    """Run the steps of a scenario and return the states of its job."""
    return PodGroupScenario(scenario).run() if "pods" in scenario else JobScenario(scenario).run()
