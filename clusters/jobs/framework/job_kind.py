"""A kind of job in the framework: the places of its templates, how it stops and starts, how its status is read."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple

from clusters.api_objects import Kind
from clusters.jobs.framework.context import MULTIKUEUE_CONTROLLER, JobContext
from clusters.jobs.framework.defaulting import default_priority_class, default_queue, runs_in_other_clusters
from clusters.jobs.framework.errors import CannotStart, FieldErrors, JobError, distinct
from clusters.jobs.framework.identity import is_managed, queue_name_of
from clusters.jobs.framework.manifest import JsonObject, assign, dig, mapping_at, without_empty_texts
from clusters.jobs.framework.pod_set_info import PodSetInfo, merge_into_template, restore_template
from clusters.jobs.framework.pod_sets import make_pod_set
from clusters.jobs.framework.topology import NO_LABELS, PodLabels, check_groups, check_slice_bound, check_topology
from clusters.jobs.framework.validation import check_changed_job, check_new_job
from queues.manifests.job import WorkloadsPer


class Stopping(StrEnum):
    """How the pods of a job are stopped."""

    SUSPEND = "suspend"
    """The job is suspended in its spec, and stays without pods."""
    DELETE = "delete"
    """The job is its pod: it is deleted and created again."""
    DELETE_PODS = "delete pods"
    """Its pods are deleted one by one, and their replacements wait at the gate."""


class Outcome(NamedTuple):
    """Whether a job has ended, and how."""

    finished: bool
    success: bool = True
    message: str = ""


@dataclass(frozen=True, slots=True)
class TemplateSite:
    """A pod template inside of a job: `template` is the job's own, `path` that of its metadata in errors."""

    name: str
    count: int
    template: JsonObject
    path: str
    labels: PodLabels = NO_LABELS
    minimum: int | None = None

    @classmethod
    def under(cls, holder: JsonObject, path: str, name: str, count: int, labels: PodLabels = NO_LABELS) -> TemplateSite:
        """Return the `template` of a mapping."""
        return cls(name, count, mapping_at(holder, "template"), f"{path}.template.metadata", labels)


class JobKind(ABC):
    """One kind of job. Objects passed in are changed only by methods whose name says so."""

    api_version: ClassVar[str]
    kind: ClassVar[str]
    plural: ClassVar[str]
    suspend_path: ClassVar[tuple[str, ...]] = ("spec", "suspend")
    managed_by_path: ClassVar[tuple[str, ...]] = ()
    """The path at which the job names its controller; () if it has none."""
    own_manager: ClassVar[str] = ""
    """The controller that runs jobs of this kind by default."""
    multikueue: ClassVar[bool] = True
    """Whether MultiKueue hands jobs of this kind to other clusters."""
    elastic: ClassVar[bool] = False
    """Whether jobs may scale by workload slices."""
    takes_prebuilt_workload: ClassVar[bool] = True
    checks_groups: ClassVar[bool] = True
    defaults_updates: ClassVar[bool] = False
    """Whether the mutating webhook runs on edits too."""
    repeats_checks: ClassVar[bool] = True
    """Whether an edit must satisfy all rules for new jobs, instead of only those about topology."""
    reads_topology_off_pod_sets: ClassVar[bool] = False
    """Whether annotations that can't be read fail the job as a whole, instead of naming their field."""

    stopping: ClassVar[Stopping] = Stopping.SUSPEND
    workloads_per: ClassVar[WorkloadsPer] = WorkloadsPer.JOB
    optional: ClassVar[bool] = True
    """Whether a cluster serves the kind only where its operator is installed."""
    refers_to: ClassVar[tuple[Kind, ...]] = ()
    """Kinds of objects in the cluster without which the jobs can't be read."""
    short_names: ClassVar[tuple[str, ...]] = ()
    restart_policies: ClassVar[tuple[str, ...]] = ()
    """The restart policies that the API server accepts in the kind's templates, for kinds whose templates it
    validates."""
    spec_fields: ClassVar[frozenset[str]] = frozenset()
    """All fields of the spec, for a kind that is part of Kubernetes: an unknown one is a mistake. Empty: any field is
    allowed."""
    spec_integers: ClassVar[tuple[str, ...]] = ()
    """The fields of the spec that are whole numbers from 0."""
    pod_template_path: ClassVar[str | None] = None
    """The path of the only template, as errors name it: empty for a pod. None for a kind that may have several."""
    remedy: ClassVar[str] = ""
    """The remedy for a job whose pods cannot be determined."""
    has_workload: ClassVar[bool] = True
    """False for kinds that create jobs: they are kept and created in the cluster, and their jobs get workloads."""
    remakes_parts: ClassVar[bool] = False
    """Whether its operator recreates deleted parts while the object itself waits for their deletion."""
    size_path: ClassVar[str] = "spec"
    """The path that errors name if the number of pods cannot change."""
    serves: ClassVar[bool] = False
    """Whether jobs run until they are deleted."""
    groups_pods: ClassVar[bool] = False
    """Whether the pods of a workload are members of a pod group, which the controller of pods starts and stops."""
    kept_texts: ClassVar[frozenset[str]] = frozenset()
    """Fields that the kind's API writes even where they are empty."""
    omitted_zeros: ClassVar[frozenset[str]] = frozenset()
    """Numbers that the kind's API leaves out where they are 0."""

    @property
    def group(self) -> str:
        """The API group, empty for the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        return self.api_version.rpartition("/")[2]

    @property
    def resource(self) -> Kind:
        """The group, version and plural of the kind in the API."""
        return Kind(self.api_version, self.kind, self.plural)

    @property
    def full_name(self) -> str:
        """The kind with its group and version, as Kubernetes writes it."""
        api_version = self.api_version if "/" in self.api_version else f"/{self.api_version}"
        return f"{api_version}, Kind={self.kind}"

    def as_kept(self, job: JsonObject) -> JsonObject:
        """Return a copy of the object as the API server would return it."""
        return {
            key: without_empty_texts(value, self.kept_texts, self.omitted_zeros if key == "status" else frozenset())
            for key, value in copy.deepcopy(job).items()
        }

    def prepare_for_worker(self, job: JsonObject) -> None:  # noqa: B027 - most kinds have nothing of the sort
        """Remove fields that this cluster's API server or controller wrote, before the job is created in another
        cluster.
        """

    def fill_in(self, job: JsonObject) -> None:  # noqa: B027 - most kinds have no such default
        """Fill in the API server's defaults that matter for pods: users' manifests lack them."""

    # Parts of the job

    @abstractmethod
    def sites(self, job: JsonObject) -> list[TemplateSite]:
        """Return the templates, in the order of the pod sets; missing ones are created in the job."""

    def pod_sets(self, job: JsonObject, context: JobContext) -> list[JsonObject]:
        """Return the pod sets of the job's workload. Raises JobError."""
        return [
            make_pod_set(site.name, site.count, site.template, site.labels, minimum=site.minimum)
            for site in self.sites(job)
        ]

    def templates(self, job: JsonObject) -> list[tuple[str, JsonObject]]:
        """Return the job's own templates, each with the name of its pod set."""
        return [(site.name.lower(), site.template) for site in self.sites(job)]

    def run_sites(self, job: JsonObject, context: JobContext) -> list[TemplateSite]:
        """Return the templates of the job's pods. Raises JobError."""
        return self.sites(job)

    def workload_count(self, job: JsonObject) -> int:
        """Return the number of workloads of the job."""
        return 1

    def hands_over(self, job: JsonObject) -> JsonObject:
        """Return the object whose labels and annotations, as named by the Configuration, are copied to its new
        workload."""
        return job

    def selector_of_pods(self, job: JsonObject) -> str:
        """Return the selector of all its pods, for a kind whose pods are stopped one by one."""
        return ""

    def group_of(self, pod: JsonObject) -> str:
        """Return the number of a pod's group, for a kind with a workload for each group of pods."""
        return ""

    def check_schema(self, job: JsonObject) -> FieldErrors:
        """Return the errors of the API server itself, beyond the types of fields."""
        return []

    def priority_class(self, job: JsonObject) -> str | None:
        """Return the PriorityClass that the job itself names; None if the kind leaves that to the pods."""
        return None

    def pod_label_selector(self, job: JsonObject) -> str | None:
        """Return the selector of the job's pods, None if there is none."""
        return None

    # Start and stop

    def is_suspended(self, job: JsonObject) -> bool:
        return dig(job, *self.suspend_path) is True

    def suspend(self, job: JsonObject) -> None:
        assign(job, self.suspend_path, True)

    def resume(self, job: JsonObject) -> None:
        assign(job, self.suspend_path, False)

    def start(self, job: JsonObject, infos: Sequence[PodSetInfo], context: JobContext) -> None:
        """Merge the admission into the job, and let it run. Raises CannotStart; the job is then unusable."""
        sites = self.sites(job)
        expect_infos(len(sites), infos)
        self.resume(job)
        for site, info in zip(sites, infos, strict=True):
            merge_into_template(site.template, info)

    def stop(self, job: JsonObject, infos: Sequence[PodSetInfo] | None) -> None:
        """Suspend the job and restore its templates. Raises JobError; changes made before that are kept."""
        if not self.is_suspended(job):
            self.suspend(job)
            if infos is not None:
                self.restore(job, infos)

    def restore(self, job: JsonObject, infos: Sequence[PodSetInfo]) -> None:
        """Restore the templates from the pod sets; do nothing if their numbers differ."""
        sites = self.sites(job)
        if len(sites) == len(infos):
            for site, info in zip(sites, infos, strict=True):
                restore_template(site.template, info)

    def is_stopped(self, job: JsonObject) -> bool:
        """Return whether all pods of a suspended job are gone, and none can be created."""
        return self.is_suspended(job) and not self.is_active(job)

    def status_before_change(self, job: JsonObject) -> JsonObject | None:
        """Return the status that a suspended job needs before the API server accepts other templates."""
        return None

    def resize(self, job: JsonObject, sizes: JsonObject) -> None:  # noqa: B027 - of elastic kinds only
        """Set the pod counts of a running job to those of `sizes`, another version of the job."""

    # The status

    @abstractmethod
    def outcome(self, job: JsonObject) -> Outcome:
        """Return whether, and how, the job has finished."""

    @abstractmethod
    def is_active(self, job: JsonObject) -> bool:
        """Return whether pods of the job may still run."""

    @abstractmethod
    def pods_ready(self, job: JsonObject, context: JobContext) -> bool:
        """Return whether all pods are ready, or done."""

    def reclaimable_pods(self, job: JsonObject, context: JobContext) -> list[JsonObject] | None:
        """Return the pods that will not be needed again, {name, count} per pod set; None if the kind does not report
        them."""
        return None

    def is_on_hold(self, job: JsonObject) -> bool | None:
        """Return whether the job waits for its author; None if the kind has no such state."""
        return None

    def is_skipped(self, job: JsonObject) -> bool | None:
        """Return whether the controller ignores the job; None if the kind has no such state."""
        return None

    # Elastic jobs

    def slice_name(self, job: JsonObject) -> str:
        """Return the part of the workload's name that distinguishes this size from others."""
        return str(dig(job, "metadata", "generation") or 0)

    def elastic_annotations(self, job: JsonObject, context: JobContext) -> dict[str, str]:
        """Return the annotations that an elastic job needs on itself."""
        return {}

    # The webhooks

    def default(self, job: JsonObject, context: JobContext) -> None:
        """Apply the mutating webhook. Raises JobError if the job is refused."""
        default_queue(job, context)
        default_priority_class(job, context)
        if is_managed(job, context) and not self.is_suspended(job):
            self.suspend(job)
        self._hand_to_other_clusters(job, context)
        self.complete(job, context)

    def _hand_to_other_clusters(self, job: JsonObject, context: JobContext) -> None:
        if not self.managed_by_path or dig(job, *self.managed_by_path) not in (None, self.own_manager):
            return
        if runs_in_other_clusters(job, context):
            assign(job, self.managed_by_path, MULTIKUEUE_CONTROLLER)

    def complete(self, job: JsonObject, context: JobContext) -> None:  # noqa: B027 - most kinds need nothing more
        """Fill in fields that only this kind needs."""

    def check_create(self, job: JsonObject, context: JobContext) -> FieldErrors:
        """Return the mistakes in a new job. Raises JobError for a mistake of the job as a whole."""
        return distinct([*check_new_job(self, job), *self.check_own(job, context), *self.check_topology(job, context)])

    def check_update(self, old: JsonObject, new: JsonObject, context: JobContext) -> FieldErrors:
        """Return the mistakes in an edit. Raises JobError for a mistake of the job as a whole."""
        again = self.check_create if self.repeats_checks else self.check_topology
        return distinct([*check_changed_job(self, old, new, context), *again(new, context)])

    def check_own(self, job: JsonObject, context: JobContext) -> FieldErrors:
        """Return the violations of the rules that only this kind has."""
        return []

    def check_topology(self, job: JsonObject, context: JobContext) -> FieldErrors:
        """Check the topology annotations of all templates. Raises JobError if they cannot be read at all."""
        sites = self.sites(job)
        pod_sets, failure = self.try_pod_sets(job, context)
        if failure is not None and self.reads_topology_off_pod_sets:
            raise failure
        errors: FieldErrors = []
        counts: dict[str, int] = {}
        for pod_set in pod_sets:
            counts.setdefault(pod_set["name"], pod_set["count"])
        for site in sites:
            errors += check_topology(site.path, site.template)
            if failure is None:
                errors += check_slice_bound(site.path, site.template, counts[site.name.lower()])
        if self.checks_groups:
            errors += check_groups(pod_sets, {site.name.lower(): site.path for site in sites})
        if failure is not None and not errors:
            raise failure
        return errors

    def try_pod_sets(self, job: JsonObject, context: JobContext) -> tuple[list[JsonObject], JobError | None]:
        """Return the pod sets, or the error that prevents them."""
        try:
            return self.pod_sets(job, context), None
        except JobError as failure:
            return [], failure

    def warnings(self, job: JsonObject, context: JobContext) -> list[str]:
        """Return warnings, in addition to the errors."""
        return []

    def is_watched_over(self, job: JsonObject, context: JobContext) -> bool:
        """Return whether the stricter rules for managed jobs apply."""
        return context.settings.manage_jobs_without_queue_name or bool(queue_name_of(job))


def expect_infos(count: int, infos: Sequence[Any]) -> None:
    """Raises CannotStart if the admission has other pod sets than the job."""
    if len(infos) != count:
        raise CannotStart(f"invalid podset infos: expecting {count} podset, got {len(infos)}")


def integer_at(obj: JsonObject, *path: str, default: int = 0) -> int:
    """Read a number of the object; if it is absent, return the default."""
    value = dig(obj, *path)
    return default if value is None else int(value)
