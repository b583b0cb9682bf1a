"""Recorded scenarios of jobs on the road that live jobs take: rows in the database, the watcher's pass, the push."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Any, Final
from zlib import crc32

import orjson
from django.db.models import F, Model, QuerySet

from accounts.models import Cluster, ClusterMode, Namespace
from clusters.api_errors import ClusterError
from clusters.api_objects import JsonObject, Kind
from clusters.client import ClusterClient, Listing, WatchEvent
from clusters.jobs.framework.conditions import is_admitted
from clusters.jobs.framework.manifest import annotations_of, controller_of, dig, labels_of, name_of, namespace_of
from clusters.jobs.framework.store import ObjectStore
from clusters.jobs.registry import JOB_KINDS
from clusters.jobs.scenario import NOW, JobScenario, admit
from clusters.push.desired_state import surroundings_of
from clusters.push.sweep import PushReport, _Sweep
from clusters.sync.suspendable_jobs import SuspendableJobSync
from queues.manifests.pod_group import POD, POD_GROUP
from queues.manifests.workload_object import read_workload
from queues.models import (
    AdmissionCheck,
    ClusterObject,
    ClusterQueue,
    Job,
    LocalQueue,
    PriorityClass,
    ResourceFlavor,
    Workload,
    WorkloadPriorityClass,
)
from queues.services.job_changes import remove_workloads
from queues.services.submission import create_workloads
from queues.services.workload_objects import workload_manifest
from queues.services.workloads import delete_workloads, record_stopped
from scheduling.manifest import FieldReader, ValidationReport
from scheduling.manifest.merge_patch import merge_patch
from scheduling.model.vocabulary import PendingReason, WorkloadStatus

START: Final = datetime.fromisoformat(NOW)
MAX_ROUNDS: Final = 12
_LEVEL: Final = "kubernetes.io/hostname"


class StoredCluster(ClusterClient):
    """The API of a cluster whose objects are in a store. No controller runs in it."""

    def __init__(self, store: ObjectStore) -> None:
        self.store = store
        self.server = "stored"

    def get(self, kind: Kind, namespace: str, name: str) -> JsonObject | None:
        found = as_served(self.store.get(kind.kind, namespace, name))
        if found is not None and kind.kind == "Job" and (found.get("spec") or {}).get("suspend"):
            conditions = found.setdefault("status", {}).setdefault("conditions", [])
            if not any(each["type"] == "Suspended" for each in conditions):
                conditions.append({"type": "Suspended", "status": "True"})
        return found

    def list(self, kind: Kind, namespace: str = "", *, label_selector: str = "", field_selector: str = "") -> Listing:
        wanted = dict(each.split("=") for each in label_selector.split(",") if each)
        without = [each.split("!=") for each in field_selector.split(",") if each]
        found = [
            each
            for each in self.store.list(kind.kind, namespace)
            if wanted.items() <= labels_of(each).items()
            and all(dig(each, *path.split(".")) != value for path, value in without)
        ]
        return Listing(tuple(filter(None, map(as_served, found))), "")

    def patch(
        self, kind: Kind, namespace: str, name: str, patch: Mapping[str, Any], *, subresource: str = ""
    ) -> JsonObject:
        found = self.store.get(kind.kind, namespace, name)
        if found is None:
            raise ClusterError(HTTPStatus.NOT_FOUND, "NotFound", f"{kind.plural} {name!r} not found")
        version = dig(patch, "metadata", "resourceVersion")
        if version and version != _version(found):
            raise ClusterError(HTTPStatus.CONFLICT, "Conflict", f"{kind.plural} {name!r} has been modified")
        parts = ("status",) if subresource else tuple(key for key in patch if key != "status")
        changed: JsonObject = merge_patch(found, {key: patch[key] for key in parts})
        self.store.write(changed)
        return {**changed, "metadata": {**changed["metadata"], "resourceVersion": _version(changed)}}

    def delete(self, kind: Kind, namespace: str, name: str, **_: Any) -> bool:
        found = self.store.get(kind.kind, namespace, name)
        if found is not None:
            self.store.delete(found, NOW)
        return found is not None


def as_served(obj: JsonObject | None) -> JsonObject | None:
    """The object with what every API server says of it."""
    if obj is not None:
        obj["metadata"].setdefault("creationTimestamp", NOW)
        obj.setdefault("spec", {})
        obj["metadata"]["resourceVersion"] = _version(obj)
    return obj


def _version(obj: JsonObject) -> str:
    """The version of an object, which follows from all else that it says."""
    metadata = {key: value for key, value in obj["metadata"].items() if key != "resourceVersion"}
    shown = {"spec": {}, **obj, "metadata": {"creationTimestamp": NOW, **metadata}}
    return str(crc32(orjson.dumps(shown, option=orjson.OPT_SORT_KEYS)) + 1)


_OF_A_ROUND: Final = (
    "pk", "name", "status", "push_sequence", "pushed_sequence", "queue_name", "active", "on_hold", "evicted_at",
    "conditions", "ending",
)  # fmt: skip
"""The columns of workloads that tell whether a round changed something."""


class LiveScenario(JobScenario):
    """A scenario whose workloads are rows, and whose controllers are the watcher and the push."""

    def __init__(self, scenario: Mapping[str, Any]) -> None:
        super().__init__(scenario)
        self.cluster = Cluster.objects.create(
            name=f"live-{Cluster.objects.count()}",
            mode=ClusterMode.SCHEDULE,
            configuration=_configuration(scenario.get("config") or {}),
        )
        objects: list[JsonObject] = list(scenario.get("cluster") or ())
        _store(self.cluster, objects)
        for obj in objects:
            if obj["kind"] == "Workload":
                _store_workload(self.cluster, obj)

    def live(self) -> list[JsonObject]:
        """Return the objects and workloads after the creation and after each step."""
        obj = copy.deepcopy(self.scenario["object"])
        self.kind = JOB_KINDS[obj["kind"]]
        self.kind.default(obj, self.context)
        self.object = obj
        self.key = (obj["kind"], namespace_of(obj), name_of(obj))
        self.client = StoredCluster(self.store)
        self.sync = SuspendableJobSync(self.cluster, self.kind, self.client)
        self.seconds = START.timestamp()
        self.store.write(merge_patch(obj, {"metadata": {"creationTimestamp": NOW}}))
        self._settle()
        return [self._now("create"), *(self._after(step) for step in self.scenario.get("steps") or ())]

    def _after(self, step: JsonObject) -> JsonObject:
        actions = {
            "admit": self._admit_rows, "evict": self._evict_rows, "patch": self._patch,
            "deleteWorkload": self._delete_rows,
        }  # fmt: skip
        actions[step["op"]](step)
        self._settle()
        return self._now(step["op"])

    def _settle(self) -> str:
        before = (self.store.writes, self._rows())
        last = self.client.get(self.kind.resource, *self.key[1:])
        for _ in range(MAX_ROUNDS):
            self.seconds += 100
            obj = self.client.get(self.kind.resource, *self.key[1:])
            if obj is not None:
                self.sync.apply([WatchEvent("MODIFIED", obj)], self.seconds)
            elif last is not None:
                self.sync.apply([WatchEvent("DELETED", last)], self.seconds)
            self.sync.tick(self.seconds + 50)
            around = surroundings_of(self.cluster, "")
            sweep = _Sweep(self.cluster, self.client, PushReport(), lambda: self.seconds, around)
            sweep.tell()
            self._schedule()
            now = (self.store.writes, self._rows())
            if now == before:
                return ""
            before, last = now, obj
        return ""

    def _rows(self) -> Any:
        rows = Workload.objects.filter(cluster=self.cluster).order_by("pk")
        return list(rows.values_list(*_OF_A_ROUND))

    def _schedule(self) -> None:
        """Act as the scheduler: evict workloads that are to be removed, and take the quota of stopped ones."""
        # One statement, not three: as each decides about rows that the others leave alone, all can decide by one look.
        holding = list(self._holding().order_by("pk"))
        to_remove = [row.pk for row in holding if not row.active and row.evicted_at is None]
        if to_remove:
            Workload.objects.filter(pk__in=to_remove).update(
                evicted_at=START, status=WorkloadStatus.EVICTED, push_sequence=F("push_sequence") + 1
            )
        for row in holding:
            if row.evicted_at is None or row.pushed_sequence != row.push_sequence or self._runs():
                continue
            record_stopped(self.cluster, [(row.namespace, row.name)], now=START)
            self._release(row)
        for row in holding:
            if row.evicted_at is None and row.on_hold and row.pk not in to_remove:
                self._release(row)

    def _holding(self) -> QuerySet[Workload]:
        """The workloads with quota."""
        return Workload.objects.filter(cluster=self.cluster, quota_reserved_at__isnull=False)

    def _runs(self) -> bool:
        obj = self.store.get(*self.key)
        return obj is not None and (not self.kind.is_suspended(obj) or self.kind.is_active(obj))

    def _release(self, row: Workload) -> None:
        row.pod_sets.update(flavors={}, admitted_count=None, topology_assignment=None)
        row.refresh_from_db()
        state = {"QuotaReserved", "Admitted"}
        row.conditions = [{**each, "status": "False"} if each["type"] in state else each for each in row.conditions]
        row.quota_reserved_at = row.admitted_at = row.pods_stopped_at = None
        if row.status != WorkloadStatus.FINISHED:
            row.status = WorkloadStatus.PENDING
        row.push_sequence += 1
        row.save()

    # The steps of a scenario

    def _admit_rows(self, step: JsonObject) -> None:
        rows = Workload.objects.filter(cluster=self.cluster, active=True, on_hold="").exclude(
            status__in=[WorkloadStatus.FINISHED, WorkloadStatus.ADMITTED]
        )
        for row in rows.prefetch_related("pod_sets").order_by("name"):
            if not is_whole(row):
                continue
            obj = workload_manifest(row)
            admit(obj, step)
            status = obj["status"]
            for pod_set, given in zip(row.pod_sets.all(), status["admission"]["podSetAssignments"], strict=True):
                domains = [{"values": ["host"], "count": given["count"]}]
                pod_set.flavors, pod_set.admitted_count = given["flavors"], given["count"]
                pod_set.topology_assignment = (
                    {"levels": [_LEVEL], "domains": domains} if "topologyAssignment" in given else None
                )
                pod_set.save()
            Workload.objects.filter(pk=row.pk).update(
                status=WorkloadStatus.ADMITTED,
                quota_reserved_at=START,
                admitted_at=START,
                evicted_at=None,
                pods_stopped_at=None,
                cluster_queue_name=step["clusterQueue"],
                conditions=status["conditions"],
                admission_check_states=status["admissionChecks"],
                push_sequence=F("push_sequence") + 1,
            )

    def _evict_rows(self, step: JsonObject) -> None:
        rows = Workload.objects.filter(cluster=self.cluster, quota_reserved_at__isnull=False)
        for row in rows.exclude(status=WorkloadStatus.FINISHED):
            given = {"type": "Evicted", "status": "True", "reason": step["reason"], "message": step["message"]}
            kept = [each for each in row.conditions if each["type"] != "Evicted"]
            Workload.objects.filter(pk=row.pk).update(
                evicted_at=START,
                status=WorkloadStatus.EVICTED,
                conditions=[*kept, {**given, "lastTransitionTime": NOW}],
                push_sequence=F("push_sequence") + 1,
            )

    def _delete_rows(self, step: JsonObject) -> None:
        rows = Workload.objects.filter(cluster=self.cluster).order_by("pk")
        others = rows.filter(job__isnull=False).exclude(job__name=self.key[2]).exclude(job__kind__in=(POD, POD_GROUP))
        others.delete()  # no controller of others keeps theirs
        finished = [(row.namespace, row.name) for row in rows if row.status == WorkloadStatus.FINISHED]
        remove_workloads(self.cluster, list(rows), actor="a user", now=START)
        delete_workloads(self.cluster, finished, actor="a user", now=START)

    def _now(self, op: str) -> JsonObject:
        obj = self.store.get(*self.key)
        rows = Workload.objects.filter(cluster=self.cluster).prefetch_related("pod_sets").select_related("job")
        return {
            "op": op,
            "object": self.kind.as_kept(obj) if obj is not None else None,
            "workloads": [workload_manifest(row) for row in rows.order_by("name")],
        }


def is_whole(row: Workload) -> bool:
    """Whether the workload is one of Kueue's too, which makes that of a group once all of its pods are there, and keeps
    none that was deleted."""
    if row.deletion_requested_at is not None and row.status == WorkloadStatus.FINISHED:
        return False
    reasons = {each["reason"] for each in row.conditions if each["status"] == "True"}
    return PendingReason.POD_GROUP_INCOMPLETE not in reasons


def _configuration(config: Mapping[str, Any]) -> JsonObject:
    found: JsonObject = {}
    if config.get("manageJobsWithoutQueueName"):
        found["manageJobsWithoutQueueName"] = True
    if config.get("managedJobsNamespaceSelector"):
        found["managedJobsNamespaceSelector"] = {"matchLabels": config["managedJobsNamespaceSelector"]}
    if config.get("labelKeysToCopy"):
        found["integrations"] = {"labelKeysToCopy": list(config["labelKeysToCopy"])}
    return found


def _store(cluster: Cluster, objects: Iterable[JsonObject]) -> None:
    """The rows for objects, with one statement for each kind."""
    alike: dict[type[Model], list[Model]] = {}
    for row in filter(None, (_row(cluster, obj) for obj in objects)):
        alike.setdefault(type(row), []).append(row)
    for model, rows in alike.items():
        model._default_manager.bulk_create(rows)


def _row(cluster: Cluster, obj: JsonObject) -> Model | None:
    """The row for an object, if there are rows of its kind."""
    kind, name, namespace = obj["kind"], name_of(obj), namespace_of(obj)
    spec: JsonObject = obj.get("spec") or {}
    made = {"cluster": cluster, "name": name, "created_at": START}
    if kind == "Namespace":
        return Namespace(**made, labels=labels_of(obj))
    if kind == "ResourceFlavor":
        labels, tolerations = spec.get("nodeLabels") or {}, spec.get("tolerations") or []
        return ResourceFlavor(**made, node_labels=labels, tolerations=tolerations)
    if kind == "ClusterQueue":
        checks = (spec.get("admissionChecksStrategy") or {}).get("admissionChecks") or []
        return ClusterQueue(**made, namespace_selector={}, admission_checks=checks)
    if kind == "LocalQueue":
        return LocalQueue(**made, namespace=namespace, cluster_queue_name=spec["clusterQueue"])
    if kind == "AdmissionCheck":
        return AdmissionCheck(**made, controller_name=spec["controllerName"])
    if kind == "WorkloadPriorityClass":
        return WorkloadPriorityClass(**made, value=obj["value"])
    if kind == "PriorityClass":
        return PriorityClass(**made, value=obj["value"], global_default=bool(obj.get("globalDefault")))
    if kind in ("TrainingRuntime", "ClusterTrainingRuntime", "RayCluster"):
        return ClusterObject(cluster=cluster, kind=kind, namespace=namespace, name=name, manifest=obj)
    if kind in JOB_KINDS:
        made |= {"namespace": namespace, "uid": obj["metadata"]["uid"], "found_in_cluster": True}
        return Job(**made, kind=kind, manifest=obj, labels=labels_of(obj), annotations=annotations_of(obj))
    return None


def _store_workload(cluster: Cluster, obj: JsonObject) -> None:
    """A row for a Workload, with the owner and the admission that the object says."""
    spec = read_workload(FieldReader(ValidationReport(), "", obj), "v1beta2")
    create_workloads(cluster, [spec], actor="a user", now=START)
    rows = Workload.objects.filter(cluster=cluster, namespace=spec.namespace, name=spec.name)
    rows.update(priority=spec.priority or 0, priority_class_kind="", priority_class_name="", priority_class_group="")
    owner = controller_of(obj)
    if owner is not None:
        rows.update(job=Job.objects.get(cluster=cluster, kind=owner["kind"], name=owner["name"]))
    if is_admitted(obj):
        rows.update(
            status=WorkloadStatus.ADMITTED,
            quota_reserved_at=START,
            admitted_at=START,
            conditions=obj["status"]["conditions"],
            push_sequence=0,
        )
