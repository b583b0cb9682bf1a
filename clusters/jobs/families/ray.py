"""The kinds of KubeRay: a RayCluster's spec, with a head and groups of workers."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from clusters.jobs.framework.context import JobContext
from clusters.jobs.framework.errors import FieldErrors, JobError, distinct, forbidden, invalid, too_many
from clusters.jobs.framework.identity import is_elastic, queue_name_of
from clusters.jobs.framework.job_kind import JobKind, TemplateSite
from clusters.jobs.framework.manifest import (
    JsonObject,
    annotations_of,
    dig,
    mapping_at,
    name_of,
    namespace_of,
)
from clusters.jobs.framework.pod_sets import make_pod_set
from clusters.jobs.framework.scheduling_gates import add_gate
from clusters.jobs.framework.topology import check_groups, check_slice_bound, check_topology
from clusters.jobs.framework.validation import check_changed_job
from queues.manifests import kueue_keys as keys
from queues.manifests.workload import MAX_POD_SETS
from scheduling.model.quantity import parse_quantity

HEAD: Final = "head"
RAY_CLUSTER_LABEL: Final = "ray.io/cluster"
_FAULT_TOLERANCE: Final = "ray.io/ft-enabled"
_CLEANUP: Final = {"cpu": "200m", "memory": "256Mi"}
"""The requests of KubeRay's job that cleans up Redis: it runs in the place of the head."""
_AUTOSCALER: Final = {"cpu": "500m", "memory": "512Mi"}


class RayJobKind(JobKind):
    """A kind around the spec of a RayCluster."""

    api_version = "ray.io/v1"
    managed_by_path = ("spec", "managedBy")
    own_manager = "ray.io/kuberay-operator"
    elastic = True
    kept_texts = frozenset({"message"})
    cluster_path: ClassVar[tuple[str, ...]] = ("spec",)
    """The path of the cluster's spec."""
    error_path: ClassVar[str] = "spec"
    """The path of the cluster's own fields in errors."""
    template_path: ClassVar[str] = "spec"
    """The path of its templates in errors: Kueue uses their path in a RayCluster."""
    autoscaling_rule: ClassVar[str] = "a kueue managed job should only use autoscaling when workload slicing is enabled"
    gates_templates: ClassVar[bool] = True
    """Whether the pods of an elastic job wait at a gate of their own."""

    def cluster(self, job: JsonObject) -> JsonObject:
        return mapping_at(job, *self.cluster_path)

    def sites(self, job: JsonObject) -> list[TemplateSite]:
        cluster, path = self.cluster(job), self.template_path
        groups = cluster.get("workerGroupSpecs") or ()
        return [
            TemplateSite.under(mapping_at(cluster, "headGroupSpec"), f"{path}.headGroupSpec", HEAD, 1),
            *(
                TemplateSite.under(group, f"{path}.workerGroupSpecs[{index}]", group["groupName"], worker_count(group))
                for index, group in enumerate(groups)
            ),
        ]

    def pod_sets(self, job: JsonObject, context: JobContext) -> list[JsonObject]:
        cluster = self.cluster(job)
        found = [make_pod_set(site.name, site.count, site.template) for site in self.sites(job)]
        spec = mapping_at(found[0], "template", "spec")
        if survives_its_head(cluster, annotations_of(job)):
            _ask_for_cleanup(spec)
        if cluster.get("enableInTreeAutoscaling"):
            spec["containers"] = [*(spec.get("containers") or ()), _autoscaler(cluster)]
        return found

    # The webhooks

    def complete(self, job: JsonObject, context: JobContext) -> None:
        if is_elastic(job) and self.gates_templates:
            for site in self.sites(job):
                add_gate(site.template, keys.ELASTIC_JOB_GATE)

    def check_own(self, job: JsonObject, context: JobContext) -> FieldErrors:
        return self.check_cluster(job) if self.is_watched_over(job, context) else []

    def check_cluster(self, job: JsonObject) -> FieldErrors:
        """Check the cluster of a managed job."""
        cluster, path = self.cluster(job), self.error_path
        errors: FieldErrors = []
        if cluster.get("enableInTreeAutoscaling") and not is_elastic(job):
            errors.append(invalid(f"{path}.enableInTreeAutoscaling", True, self.autoscaling_rule))
        groups = cluster.get("workerGroupSpecs") or ()
        if len(groups) + 1 > MAX_POD_SETS:
            errors.append(too_many(f"{path}.workerGroupSpecs", MAX_POD_SETS))
        for index, group in enumerate(groups):
            if group.get("groupName") == HEAD:
                field = f"{path}.workerGroupSpecs[{index}].groupName"
                errors.append(forbidden(field, '"head" is reserved for the head group'))
        return errors

    def check_update(self, old: JsonObject, new: JsonObject, context: JobContext) -> FieldErrors:
        if not self.is_watched_over(new, context) and not queue_name_of(old):
            return []
        return distinct([*check_changed_job(self, old, new, context), *self.check_create(new, context)])

    def check_topology(self, job: JsonObject, context: JobContext) -> FieldErrors:
        if dig(job, *self.cluster_path) is None:
            return []
        sites = self.sites(job)[: len(self.cluster(job).get("workerGroupSpecs") or ()) + 1]
        pod_sets, failure = self.try_pod_sets(job, context)
        errors: FieldErrors = []
        for index, site in enumerate(sites):
            pod_set = pod_sets[index] if pod_sets else None
            if pod_set is not None or self._names_unreadable(site):
                errors += check_topology(site.path, site.template)
            if pod_set is not None:
                errors += check_slice_bound(site.path, site.template, pod_set["count"])
        errors += check_groups(pod_sets, {site.name.lower(): site.path for site in sites})
        if failure is not None and not errors:
            raise failure
        return errors

    def _names_unreadable(self, site: TemplateSite) -> bool:
        """Return whether annotations of a template are reported by field even if the pod sets can't be built."""
        return not self.reads_topology_off_pod_sets or site.name == HEAD

    # Elastic jobs

    def resize(self, job: JsonObject, sizes: JsonObject) -> None:
        wanted = {group["groupName"]: group for group in self.cluster(sizes).get("workerGroupSpecs") or ()}
        for group in self.cluster(job).get("workerGroupSpecs") or ():
            replicas = wanted.get(group["groupName"], {}).get("replicas")
            if replicas is not None:
                group["replicas"] = replicas

    def ray_cluster_name(self, job: JsonObject) -> str:
        """Return the name of the RayCluster that the job has created; "" if it has created none."""
        return ""

    def elastic_annotations(self, job: JsonObject, context: JobContext) -> dict[str, str]:
        name = self.ray_cluster_name(job)
        made = context.objects.get("RayCluster", namespace_of(job), name) if name else None
        generation = str(dig(made or {}, "metadata", "generation") or 0) if made is not None else ""
        return {keys.RAY_CLUSTER_GENERATION: generation}

    def slice_name(self, job: JsonObject) -> str:
        made = annotations_of(job).get(keys.RAY_CLUSTER_GENERATION, "")
        return super().slice_name(job) + (f"_{made}" if made else "")

    def follow_autoscaler(self, pod_sets: Sequence[JsonObject], job: JsonObject, context: JobContext) -> None:
        """Set the worker counts that the autoscaler of the RayCluster requests. Raises JobError."""
        name = self.ray_cluster_name(job)
        if not is_elastic(job) or not self.cluster(job).get("enableInTreeAutoscaling") or not name:
            return
        made = context.objects.get("RayCluster", namespace_of(job), name)
        by_name = {pod_set["name"]: pod_set for pod_set in pod_sets}
        for group in dig(made or {}, "spec", "workerGroupSpecs") or ():
            pod_set = by_name.get(group["groupName"].lower())
            if pod_set is None:
                raise JobError(
                    f"PodSet name mismatch: RayCluster {name} has worker group {group['groupName']} "
                    f"which is not found in Ray object {name_of(job)} spec"
                )
            if group.get("replicas") is not None:
                pod_set["count"] = worker_count(group)


def worker_count(group: Mapping[str, Any]) -> int:
    """Return the pods of a worker group: a replica may have several hosts."""
    replicas = 1 if group.get("replicas") is None else int(group["replicas"])
    return replicas * max(int(group.get("numOfHosts") or 1), 1)


def survives_its_head(cluster: Mapping[str, Any], annotations: Mapping[str, str]) -> bool:
    """Return whether the cluster's state outlives its head (GCS fault tolerance)."""
    return cluster.get("gcsFaultToleranceOptions") is not None or annotations.get(_FAULT_TOLERANCE) == "true"


def _ask_for_cleanup(spec: JsonObject) -> None:
    if not spec.get("containers"):
        raise JobError("cannot account for Redis cleanup resources: head pod template must include the Ray container")
    requests = mapping_at(spec["containers"][0], "resources", "requests")
    for resource, least in _CLEANUP.items():
        if parse_quantity(requests.get(resource, "0")) < parse_quantity(least):
            requests[resource] = least


def _autoscaler(cluster: JsonObject) -> JsonObject:
    own = dig(cluster, "autoscalerOptions", "resources")
    default = {"requests": dict(_AUTOSCALER), "limits": dict(_AUTOSCALER)}
    return {"name": "autoscaler", "resources": default if own is None else copy.deepcopy(own)}
