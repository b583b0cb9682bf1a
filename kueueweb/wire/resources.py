"""The resources that are served: their addresses, names, rows and columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import QuerySet

from accounts.models import Cluster
from accounts.services.object_status import STATUS_READERS
from accounts.services.reach import Reach
from clusters.jobs.framework.job_kind import JobKind
from clusters.jobs.registry import JOB_KINDS
from clusters.manifests.get import configuration_manifests
from clusters.served.kueue_kinds import GROUP, KUEUE_KINDS
from gpus.models import Node
from kinds.declaration import Kind
from kueueweb.wire import tables
from kueueweb.wire.job_objects import job_objects
from kueueweb.wire.observed import event_objects, node_objects, pod_objects
from kueueweb.wire.tables import Column
from queues.api.configuration_views import VIEWS, KindListView
from queues.kinds import KINDS
from queues.manifests.pod_group import POD
from queues.models import Job, Pod, Workload, WorkloadEvent
from queues.services.workload_objects import workload_manifest
from scheduler.api.flavor_views import ResourceFlavorListView
from scheduler.api.queue_views import ClusterQueueListView, CohortListView, LocalQueueListView

JsonObject = dict[str, Any]
_SHORT_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "LocalQueue": ("queue", "queues", "lq"),
    "ResourceFlavor": ("flavor", "flavors", "rf"),
}
"""The short names in Kueue's definitions, for kinds that have fewer here."""
_LIST_VIEWS: Final[Mapping[str, type[KindListView]]] = {
    **{name: views[0] for name, views in VIEWS.items()},
    "ClusterQueue": ClusterQueueListView,
    "Cohort": CohortListView,
    "LocalQueue": LocalQueueListView,
    "ResourceFlavor": ResourceFlavorListView,
}
"""REST's lists: they select the rows that a user may see."""


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind of object at its addresses. `versions` are without the group, the preferred one first."""

    kind: str
    plural: str
    group: str
    versions: tuple[str, ...]
    namespaced: bool
    short_names: tuple[str, ...]
    model: type[Any]
    rows: Callable[[Reach], QuerySet[Any]]
    """The rows that a user may see, by REST's rules."""
    objects: Callable[[Cluster, Sequence[Any]], list[JsonObject]]
    """The rows as objects in the preferred version."""
    columns: Callable[[str], Sequence[Column]]
    has_status: bool
    fields: Mapping[str, str]
    """Field selectors in addition to the name and the namespace -> columns of the rows. Those of kueueweb.io are no
    fields of the object, but REST's filters of the same words.
    """
    is_observed: bool = False
    """Whether only the cluster or the scheduler writes it, so that it can be read but not written here."""
    subresources: Sequence[str] = ()
    """Subresources in addition to `status`, to be read."""
    order: Sequence[str] = ()
    """The columns by which lists are ordered, if not by namespace and name. Together they are unique."""
    uid: str = "uid"
    """The column with the uid of the object."""
    cluster_path: str = "cluster"
    """The path from a row to its cluster."""
    narrowed: Callable[[QuerySet[Any], Cluster, Mapping[str, str]], QuerySet[Any]] | None = None
    """Selects the rows of a request, given the required values by the paths of the fields, if there may be too many
    rows to read all."""

    @property
    def singular(self) -> str:
        return self.kind.lower()

    def all_rows(self, cluster: Cluster) -> QuerySet[Any]:
        """Return the rows of all users."""
        found: QuerySet[Any] = self.model.objects.filter(**{self.cluster_path: cluster})
        return found.filter(kind=self.kind) if self.model is Job else found

    @property
    def ordering(self) -> Sequence[str]:
        """The columns by which lists are ordered."""
        return self.order or (("namespace", "name") if self.namespaced else ("name",))

    @property
    def qualified(self) -> str:
        """The name in messages, as Kubernetes writes it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def api_version(self, version: str) -> str:
        """Return the apiVersion of its objects in a version."""
        return f"{self.group}/{version}" if self.group else version

    def address(self, version: str) -> str:
        """Return the address of the group and the version."""
        return f"apis/{self.group}/{version}" if self.group else f"api/{version}"


def _configuration(name: str) -> Resource:
    kind = KINDS[name]
    view = _LIST_VIEWS[name]

    def rows(reach: Reach) -> QuerySet[Any]:
        asked = view()
        asked.reach = reach
        return asked.visible().prefetch_related(*kind.prefetch)

    group, versions = _served_versions(name, kind)
    return Resource(
        kind=name,
        plural=kind.plural.replace("-", ""),
        group=group,
        versions=versions,
        namespaced=kind.namespaced,
        short_names=_SHORT_NAMES.get(name, kind.short_names),
        model=kind.model,
        rows=rows,
        objects=lambda cluster, rows: [
            _completed(name, found) for found in configuration_manifests(cluster, kind, rows)
        ],
        columns=lambda version: tables.columns_of(name, version),
        has_status=name in STATUS_READERS or name == "Namespace",
        fields={"spec.clusterQueue": "cluster_queue_name"} if name == "LocalQueue" else {},
    )


def _jobs(kind: JobKind) -> Resource:
    def rows(reach: Reach) -> QuerySet[Any]:
        there = Job.objects.filter(reach.rows_in_namespaces(), kind=kind.kind, deletion_requested_at=None)
        return there.prefetch_related("workloads")

    return Resource(
        kind=kind.kind,
        plural=kind.plural,
        group=kind.group,
        versions=(kind.api_version.rpartition("/")[2],),
        namespaced=True,
        short_names=kind.short_names,
        model=Job,
        rows=rows,
        objects=job_objects,
        columns=lambda _: tables.JOB_COLUMNS,
        has_status=True,
        fields={},
    )


def _served_versions(name: str, kind: Kind) -> tuple[str, tuple[str, ...]]:
    if name in KUEUE_KINDS:
        served = [found.api_version for found in KUEUE_KINDS[name]]
        return GROUP, tuple(version for version in ("v1beta2", "v1beta1") if f"{GROUP}/{version}" in served)
    group, _, version = kind.versions[0].rpartition("/")
    return group, (version,)


def _completed(name: str, found: JsonObject) -> JsonObject:
    """Return the object with the fields that all objects of its kind have in a cluster."""
    if name == "Namespace":
        return {**found, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}
    return found


_KUEUE: Final = (
    "AdmissionCheck", "ClusterQueue", "Cohort", "LocalQueue", "MultiKueueCluster", "MultiKueueConfig",
    "ProvisioningRequestConfig", "ResourceFlavor", "Topology", "WorkloadPriorityClass",
)  # fmt: skip


def _observed(kind: str, model: type[Any], module: Any, short_name: str, **fields: Any) -> Resource:
    """Return a kind of the core group that only the cluster and the scheduler write."""
    defaults = {"namespaced": True, "has_status": True, "fields": {}}
    return Resource(
        kind=kind,
        plural=f"{kind.lower()}s",
        group="",
        versions=("v1",),
        short_names=(short_name,),
        model=model,
        rows=module.rows,
        objects=module.objects,
        columns=lambda _: module.COLUMNS,
        is_observed=True,
        **{**defaults, **fields},
    )


RESOURCES: Final[Sequence[Resource]] = (
    _configuration("Namespace"),
    _observed("Node", Node, node_objects, "no", namespaced=False, uid="shown_uid"),
    _observed(
        POD,
        Pod,
        pod_objects,
        "po",
        fields=pod_objects.FIELDS,
        subresources=("log",),
        cluster_path="workload__cluster",
    ),
    _observed(
        "Event",
        WorkloadEvent,
        event_objects,
        "ev",
        has_status=False,
        fields=event_objects.FIELDS,
        order=event_objects.ORDER,
        narrowed=event_objects.narrowed,
    ),
    *(_jobs(kind) for kind in JOB_KINDS.values() if kind.has_workload and kind.api_version == "batch/v1"),
    *map(_configuration, (*_KUEUE, "Reservation")),
    Resource(
        kind="Workload",
        plural="workloads",
        group=GROUP,
        versions=("v1beta2", "v1beta1"),
        namespaced=True,
        short_names=("kwl", "kueueworkload", "kueueworkloads", "wl"),
        model=Workload,
        rows=lambda reach: (
            Workload.objects.filter(reach.rows_in_namespaces()).select_related("job").prefetch_related("pod_sets")
        ),
        objects=lambda _, rows: [workload_manifest(row) for row in rows],
        columns=lambda version: tables.columns_of("Workload", version),
        has_status=True,
        fields={
            "status.admission.clusterQueue": "cluster_queue_name",
            "spec.queueName": "queue_name",
            "kueueweb.io/cluster-queue": "cluster_queue_name",
            "kueueweb.io/status": "status",
            "kueueweb.io/submitted-by": "submitted_by",
        },
    ),
)
"""Each kind once."""


def groups() -> dict[str, dict[str, list[Resource]]]:
    """Return group -> version, the preferred one first -> resources. The core group is empty."""
    found: dict[str, dict[str, list[Resource]]] = {}
    for resource in RESOURCES:
        for version in resource.versions:
            found.setdefault(resource.group, {}).setdefault(version, []).append(resource)
    return found


def resource_named(group: str, plural: str) -> Resource | None:
    """Return the resource of a group and a plural."""
    return next((each for each in RESOURCES if (each.group, each.plural) == (group, plural)), None)
