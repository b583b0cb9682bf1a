"""The copies of a workload and of its job for a worker, and the reading of copies (pure)."""

from __future__ import annotations

import copy as copying
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from clusters.api_objects import JsonObject, Kind
from clusters.jobs.framework.job_kind import JobKind, Stopping
from clusters.jobs.framework.manifest import dig
from clusters.jobs.framework.scheduling_gates import add_gate
from clusters.jobs.owned_keys import without_owned_keys
from clusters.jobs.registry import JOB_KINDS
from clusters.served.contents import digest
from clusters.served.workload_specs import spec_in
from queues.manifests import kueue_keys as keys
from queues.manifests.job import WorkloadsPer

MANAGER: Final = "kueueweb.io/multikueue-manager"
"""Annotation of a copy: the cluster that it is managed in, and the workload's uid there."""
JOB: Final = keys.MULTIKUEUE_JOB
"""Annotation of a copy: its job, as Kind/name."""
DIGEST: Final = "kueueweb.io/multikueue-spec"
"""Annotation of a copy that detects later changes of its workload."""
_KEPT: Final = ("name", "namespace", "labels", "annotations")


@dataclass(frozen=True, slots=True)
class Copy:
    """A Workload object in a worker."""

    obj: JsonObject

    @property
    def key(self) -> str:
        metadata = self.obj["metadata"]
        return f"{metadata['namespace']}/{metadata['name']}"

    @property
    def priority(self) -> int:
        return int(dig(self.obj, "spec", "priority") or 0)

    @property
    def owner(self) -> str:
        """Return the manager's workload of this copy; "" for a workload that Kueue created."""
        return str(self._annotation(MANAGER))

    @property
    def job(self) -> tuple[str, str]:
        """Return the kind and the name of its job; empty if it names none."""
        kind, _, name = self._annotation(JOB).partition("/")
        owners = self.obj["metadata"].get("ownerReferences") or ()
        return (kind, name) if name else next(((each["kind"], each["name"]) for each in owners), ("", ""))

    def since(self, condition: str) -> str:
        """Return the time since which the condition holds; "" if it does not."""
        found = self._condition(condition)
        return str(found.get("lastTransitionTime") or "0") if found.get("status") == "True" else ""

    def reason_of(self, condition: str) -> tuple[str, str]:
        found = self._condition(condition)
        return str(found.get("reason") or ""), str(found.get("message") or "")

    def differs(self, wanted: str) -> bool:
        """Return whether the copy was made from another spec than the one with the digest `wanted`, or its queue or pod
        counts have been changed since. A copy without a digest was made by Kueue, and never differs."""
        known = self._annotation(DIGEST)
        return bool(known) and (
            known != wanted or _digest(dig(self.obj, "spec") or {}, sizes_only=True) != _half(wanted)
        )

    def _annotation(self, key: str) -> str:
        return str((self.obj["metadata"].get("annotations") or {}).get(key, ""))

    def _condition(self, type_: str) -> Mapping[str, Any]:
        conditions = dig(self.obj, "status", "conditions") or ()
        return next((each for each in conditions if each.get("type") == type_), {})


def spec_digest(spec: Mapping[str, Any]) -> str:
    """Return two digests, joined by a dot: of the queue and the pod counts, and of the spec without `priority`,
    `priorityClassRef`, `active` and `preemptionGates`, which may change without a new copy."""
    return f"{_digest(spec, sizes_only=True)}.{_digest(spec, sizes_only=False)}"


def _half(whole: str) -> str:
    return whole.partition(".")[0]


def _digest(spec: Mapping[str, Any], *, sizes_only: bool) -> str:
    if sizes_only:
        sizes = [[each.get("name") or "main", each.get("count", 1)] for each in spec.get("podSets") or ()]
        return digest({"queue": spec.get("queueName") or "", "sizes": sizes})[:16]
    left = ("priority", "priorityClassRef", "active", "preemptionGates")
    return digest({key: value for key, value in spec.items() if key not in left})[:32]


def workload_copy(manifest: JsonObject, owner: str, origin: str, job: tuple[str, str], resource: Kind) -> JsonObject:
    """Return the Workload object for a worker. `manifest` is the workload's in v1beta2, `job` the kind and name of its
    job."""
    metadata = manifest["metadata"]
    kind_name, name = job
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key != keys.JOB_UID}
    annotations = {
        **_without_order(metadata.get("annotations") or {}),
        MANAGER: owner,
        JOB: f"{kind_name}/{name}",
        DIGEST: spec_digest(manifest["spec"]),
    }
    kind = JOB_KINDS.get(kind_name)
    if kind is not None and kind.workloads_per is WorkloadsPer.GROUP:
        annotations |= {keys.JOB_OWNER_KIND: kind.full_name, keys.JOB_OWNER_NAME: name}
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "labels": {**labels, keys.MULTIKUEUE_ORIGIN: origin},
            "annotations": annotations,
        },
        "spec": spec_in(manifest["spec"], resource.api_version),
    }


def job_copy(manifest: Mapping[str, Any], kind: JobKind, uid: str, workload: str, origin: str) -> JsonObject:
    """Return the job for the worker that runs it, suspended until its prebuilt workload starts it there."""
    made: JsonObject = copying.deepcopy(without_owned_keys(manifest))
    metadata = {key: dict(value) if isinstance(value, Mapping) else value for key, value in made["metadata"].items()}
    made = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {key: value for key, value in metadata.items() if key in _KEPT},
        "spec": made.get("spec") or {},
    }
    _let_worker_manage(made, kind)
    labels = made["metadata"].setdefault("labels", {})
    labels[keys.MULTIKUEUE_ORIGIN] = origin
    annotations = _without_order(made["metadata"].get("annotations") or {})
    made["metadata"]["annotations"] = annotations | {keys.MULTIKUEUE_ORIGIN_UID: uid}
    if kind.workloads_per is not WorkloadsPer.GROUP:
        labels[keys.PREBUILT_WORKLOAD] = workload
    if kind.stopping is Stopping.DELETE:
        add_gate(made, keys.ADMISSION_GATE)
    elif kind.stopping is Stopping.SUSPEND:
        kind.suspend(made)
    kind.prepare_for_worker(made)
    return made


def _without_order(annotations: Mapping[str, str]) -> dict[str, str]:
    """Return the annotations without those of the order between jobs: the manager has waited, and it deletes
    the jobs."""
    left = (keys.START_AFTER, keys.RETAIN_POLICY)
    return {key: value for key, value in annotations.items() if key not in left}


def _let_worker_manage(job: JsonObject, kind: JobKind) -> None:
    """The worker's own controller runs the job."""
    if not kind.managed_by_path:
        return
    *outer, last = kind.managed_by_path
    holder = dig(job, *outer)
    if isinstance(holder, dict):
        holder.pop(last, None)


def is_ours(obj: Mapping[str, Any], origin: str) -> bool:
    """Return whether a manager of this origin created a job in a worker."""
    return bool((obj["metadata"].get("labels") or {}).get(keys.MULTIKUEUE_ORIGIN) == origin)
