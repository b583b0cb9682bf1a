"""From an admission to what the cluster is told (pure): jobs with their flavors' nodes, pods with their slices.

Kueue's contract (starting a job injects the flavors' node labels and tolerations, and labels that say where it was
admitted) and HAMi's (annotations that name the slices) meet here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from typing import Any, Final
from uuid import UUID

from clusters.client import JsonObject
from clusters.jobs.owned_keys import CLUSTER_QUEUE_LABEL as CLUSTER_QUEUE_LABEL
from clusters.jobs.owned_keys import JOB_UID_LABEL as JOB_UID_LABEL
from clusters.jobs.owned_keys import LOCAL_QUEUE_LABEL as LOCAL_QUEUE_LABEL
from clusters.jobs.owned_keys import MANAGED_LABEL as MANAGED_LABEL
from clusters.jobs.owned_keys import POD_SET_LABEL as POD_SET_LABEL
from clusters.jobs.owned_keys import REPLICA_ANNOTATION as REPLICA_ANNOTATION
from clusters.jobs.owned_keys import WORKLOAD_ANNOTATION as WORKLOAD_ANNOTATION
from clusters.jobs.owned_keys import WORKLOAD_UID_LABEL as WORKLOAD_UID_LABEL
from clusters.jobs.owned_keys import without_owned_keys
from clusters.jobs.running import JobKind, Stopping
from queues.manifests.kueue_keys import ELASTIC_JOB
from scheduling.devices.requests.webhook import completed_pod
from scheduling.model.admission_check import PodSetUpdate
from scheduling.model.quantity import parse_quantity
from scheduling.model.topology import TopologyAssignment, TopologyRequest
from scheduling.model.vendor import DeviceVendor

SCHEDULER_NAME: Final = "kueueweb"
"""Pods of this scheduler are bound by us alone."""
NO_LABELS: Final[Mapping[str, str]] = {}
PLACEMENT_GATE: Final = "kueueweb.io/placement"
"""The scheduling gate of pods that another scheduler would bind before we have chosen: it goes when we have."""
KUEUE_GATES: Final = frozenset({"kueue.x-k8s.io/admission", "kueue.x-k8s.io/topology"})
"""The gates that Kueue's webhook puts on pods; of a pod that is ours they go with our own."""

QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
HOSTNAME_LABEL: Final = "kubernetes.io/hostname"
HAMI_WEBHOOK_LABEL: Final = "hami.io/webhook"

_MAX_LABEL_VALUE: Final = 63
_MAX_NUMBER: Final = 9
_SERVER_METADATA: Final = (
    "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generateName", "generation",
    "managedFields", "ownerReferences", "resourceVersion", "selfLink", "uid",
)  # fmt: skip


def uid_label(item: Mapping[str, Any], key: str) -> str:
    """A uid from a label, in its canonical form. Anyone can write a label: what is no uid is ""."""
    try:
        return str(UUID(str((item["metadata"].get("labels") or {}).get(key, ""))))
    except ValueError:
        return ""


def replica_of(pod: Mapping[str, Any]) -> int | None:
    """Which replica of its pod set a pod was made; None where it is none yet, or the annotation is no number."""
    text = str((pod["metadata"].get("annotations") or {}).get(REPLICA_ANNOTATION, ""))
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MAX_NUMBER else None


class CannotStart(Exception):
    """The pods can't run with what the flavors ask of them (Kueue finishes such a workload with FailedToStart)."""


@dataclass(frozen=True, slots=True)
class PodSetAdmission:
    """What a pod set was given.

    * count: the admitted number of pods.
    * node_labels, tolerations: of its flavors, merged.
    * nodes: the node of each replica where we chose them, "" for one that an elastic job gave up; empty where the
      cluster's own scheduler does. hosts: their host names, where these are not the nodes' names.
    * with_devices: its pods get devices from us too, so nobody else may bind them.
    * topology: the domains that its pods were assigned, if any; topology_request: how they state their ranks.
    * updates: what its admission checks add to its pods.
    """

    name: str
    count: int
    node_labels: Mapping[str, str]
    tolerations: tuple[Mapping[str, Any], ...] = ()
    nodes: tuple[str, ...] = ()
    topology: TopologyAssignment | None = None
    topology_request: TopologyRequest | None = None
    updates: tuple[PodSetUpdate, ...] = ()
    hosts: Mapping[str, str] = dataclass_field(default_factory=dict)
    with_devices: bool = True

    def host(self, node: str) -> str:
        """By which value of the host name's label pods are tied to a node."""
        return self.hosts.get(node, node)

    @property
    def tied_to(self) -> str:
        """The host that all pods can be tied to in their template; "" where each has its own, or may get another."""
        if self.with_devices or self.topology is not None or len(set(self.nodes)) != 1:
            return ""
        return self.host(self.nodes[0])

    @property
    def replicas(self) -> Sequence[int]:
        """The numbers that its pods may have."""
        if not self.nodes:
            return range(self.count)
        return [replica for replica, node in enumerate(self.nodes) if node]


@dataclass(frozen=True, slots=True)
class AdmittedWorkload:
    """What of a workload and its admission the cluster is told."""

    name: str
    uid: str
    queue_name: str
    cluster_queue_name: str
    pod_sets: tuple[PodSetAdmission, ...]


@dataclass(frozen=True, slots=True)
class JobSource:
    """A job as submitted, the uid of its row, and whether someone else made it in the cluster.

    * pod_set: of a pod of a group, the pod set that it belongs to; else its workload has one only.
    * ended, leaving: of a pod of a group, whether it has ended, and whether it is to be removed.
    * vendors: those whose devices its pods may get from us; its own pods are completed as HAMi's webhook would.
    """

    kind: JobKind
    manifest: Mapping[str, Any]
    uid: str
    found_in_cluster: bool = False
    vendors: tuple[DeviceVendor, ...] = ()
    pod_set: str = ""
    ended: bool = False
    leaving: bool = False

    @property
    def template(self) -> JsonObject:
        """The template of its pods, {metadata, spec}; that of somebody else's job is theirs."""
        template: JsonObject = without_owned_keys(self.kind.template(self.manifest))
        return template if self.found_in_cluster else completed_pod(template, self.vendors)

    @property
    def namespace(self) -> str:
        return str(self.manifest["metadata"]["namespace"])

    @property
    def name(self) -> str:
        return str(self.manifest["metadata"]["name"])

    @property
    def elastic(self) -> bool:
        """Whether it may change its size while it runs (Kueue's elastic jobs)."""
        annotations = self.manifest["metadata"].get("annotations") or {}
        return self.kind.stopping is Stopping.SUSPEND and annotations.get(ELASTIC_JOB) == "true"


def started_job(source: JobSource, workload: AdmittedWorkload) -> JsonObject:
    """What to apply so that an admitted workload's job runs. Raises CannotStart.

    Of a job that someone else made only what we decide is named, so that server-side apply leaves all else to them.
    """
    kind, pod_set = source.kind, workload.pod_sets[0]
    template = _started_template(source, workload, pod_set)
    if source.found_in_cluster:
        # The size of an elastic one is its owner's to change: pods beyond what is admitted wait at the gate.
        count = None if source.elastic else _partial_count(source, pod_set)
        return _directives(source, template, suspend=False, count=count)
    manifest = bare_manifest(source)
    manifest = kind.with_template(manifest, template)
    if kind.stopping is Stopping.SUSPEND:
        spec = {**manifest["spec"], "suspend": False}
        count = _partial_count(source, pod_set)
        if count is not None:
            spec[kind.count_field] = count
        manifest["spec"] = spec
    return manifest


def as_made(source: JobSource, there: Mapping[str, Any] | None) -> JobSource:
    """The source with pods as those of the job that is there: what containers ask for can't change any more."""
    if there is None or _limits(source.template) == _limits(source.kind.template(there)):
        return source
    return replace(source, vendors=())


def _limits(template: Mapping[str, Any]) -> list[dict[str, int]]:
    """The limits of each container, in nano units."""
    containers = [each for key in ("initContainers", "containers") for each in template["spec"].get(key) or ()]
    return [
        {name: parse_quantity(amount) for name, amount in ((each.get("resources") or {}).get("limits") or {}).items()}
        for each in containers
    ]


def named_as_started(source: JobSource, workload: AdmittedWorkload, there: Mapping[str, Any]) -> AdmittedWorkload:
    """The workload under the name of the slice that started the elastic job that runs: its template can't change, and
    its pods are told apart later."""
    if not source.elastic:
        return workload
    metadata = source.kind.template(there)["metadata"]
    uid = (metadata.get("labels") or {}).get(WORKLOAD_UID_LABEL, workload.uid)
    name = (metadata.get("annotations") or {}).get(WORKLOAD_ANNOTATION, workload.name)
    return replace(workload, uid=uid, name=name)


def restored_job(source: JobSource) -> JsonObject:
    """What to apply so that a found job has its own template again, suspended: as before it was started."""
    template = source.kind.template(source.manifest)
    count = source.manifest["spec"].get(source.kind.count_field) if source.kind.count_field else None
    return _directives(source, template, suspend=True, count=None if source.elastic else count)


def waiting_job(source: JobSource) -> JsonObject:
    """What to apply so that a job exists whose every pod is a workload: they wait at the gate for admission."""
    template = source.template
    labels = {**(template["metadata"].get("labels") or {}), **common_labels(source), HAMI_WEBHOOK_LABEL: "ignore"}
    gates = [*(template["spec"].get("schedulingGates") or ()), {"name": PLACEMENT_GATE}]
    gated = {
        "metadata": {**template["metadata"], "labels": labels},
        "spec": {**template["spec"], "schedulingGates": gates},
    }
    return source.kind.with_template(bare_manifest(source), gated)


def placed_pod(pod: Mapping[str, Any], workload: AdmittedWorkload, replica: int, hami: Mapping[str, str]) -> JsonObject:
    """The merge patch that makes a pod a replica of a workload: its labels, its number and its slices' annotations."""
    pod_set = workload.pod_sets[0]
    labels, annotations = _added(pod_set, "labels"), _added(pod_set, "annotations")
    patch: JsonObject = {
        "metadata": {
            "uid": pod["metadata"]["uid"],
            "labels": {**labels, **admission_labels(workload, pod_set)},
            "annotations": {
                **annotations, WORKLOAD_ANNOTATION: workload.name, REPLICA_ANNOTATION: str(replica), **hami,
            },
        }
    }  # fmt: skip
    return patch


def ungated_pod(
    pod: Mapping[str, Any], pod_set: PodSetAdmission, node: str, domain: Mapping[str, str] = NO_LABELS
) -> JsonObject | None:
    """The merge patch that takes our gate, and Kueue's, off a pod and ties it to its node, or to its flavors' nodes in
    its topology domain; None without one."""
    gates = pod["spec"].get("schedulingGates") or []
    kept = [gate for gate in gates if gate["name"] != PLACEMENT_GATE and gate["name"] not in KUEUE_GATES]
    if len(kept) == len(gates):
        return None
    chosen = (
        {HOSTNAME_LABEL: pod_set.host(node)}
        if node
        else {**pod_set.node_labels, **_added(pod_set, "node_selector"), **domain}
    )
    spec: JsonObject = {
        "schedulingGates": kept,
        "nodeSelector": {**(pod["spec"].get("nodeSelector") or {}), **chosen},
    }
    tolerations = (*pod_set.tolerations, *_added_tolerations(pod_set))
    if tolerations:
        spec["tolerations"] = _merged_tolerations(pod["spec"].get("tolerations") or (), tolerations)
    return {"metadata": {"uid": pod["metadata"]["uid"]}, "spec": spec}


def _started_template(source: JobSource, workload: AdmittedWorkload, pod_set: PodSetAdmission) -> JsonObject:
    template = source.template
    metadata, spec = template["metadata"], template["spec"]
    own = _with_updates(metadata.get("labels") or {}, pod_set, "labels")
    labels = {**own, **common_labels(source), **admission_labels(workload, pod_set)}
    host = "" if source.elastic else pod_set.tied_to
    selector = _merged_selector(spec.get("nodeSelector") or {}, pod_set.node_labels)
    if host:
        selector = _merged_selector(selector, {HOSTNAME_LABEL: host})
    spec["nodeSelector"] = _with_updates(selector, pod_set, "node_selector")
    tolerations = (*pod_set.tolerations, *_added_tolerations(pod_set))
    spec["tolerations"] = _merged_tolerations(spec.get("tolerations") or (), tolerations)
    placed = bool(pod_set.nodes) and not host
    gated = source.elastic or placed if source.found_in_cluster else False
    to_others = placed and not pod_set.with_devices
    if gated or to_others or (pod_set.topology is not None and not pod_set.nodes):
        # The name of a running template's scheduler can't be changed; a gate can be added while it is suspended.
        # And pods that only get a node or a topology domain from us are another scheduler's to bind.
        spec["schedulingGates"] = [*(spec.get("schedulingGates") or ()), {"name": PLACEMENT_GATE}]
    elif placed:
        spec["schedulerName"] = SCHEDULER_NAME
    if pod_set.nodes and pod_set.with_devices:
        labels[HAMI_WEBHOOK_LABEL] = "ignore"
    for field in ("nodeSelector", "tolerations"):
        if not spec[field]:
            del spec[field]
    annotations = _with_updates(metadata.get("annotations") or {}, pod_set, "annotations")
    annotations[WORKLOAD_ANNOTATION] = workload.name
    return {"metadata": {**metadata, "labels": labels, "annotations": annotations}, "spec": spec}


def _directives(source: JobSource, template: JsonObject, *, suspend: bool, count: int | None) -> JsonObject:
    """The fields of a found job that are ours to decide: whether and where it runs."""
    spec = {
        name: template["spec"][name]
        for name in ("nodeSelector", "tolerations", "schedulingGates")
        if template["spec"].get(name)
    }
    metadata = {
        name: template["metadata"][name] for name in ("labels", "annotations") if template["metadata"].get(name)
    }
    decided: JsonObject = {"suspend": suspend, "template": {"metadata": metadata, "spec": spec}}
    if count is not None:
        decided[source.kind.count_field] = count
    return {
        "apiVersion": source.kind.kind.api_version,
        "kind": source.kind.kind.kind,
        "metadata": {"name": source.name, "namespace": source.namespace},
        "spec": decided,
    }


def _partial_count(source: JobSource, pod_set: PodSetAdmission) -> int | None:
    """The number of pods to run at once where it is not the job's own (partial admission)."""
    if not source.kind.count_field:
        return None
    own = source.manifest["spec"].get(source.kind.count_field, 1)
    completions = source.manifest["spec"].get("completions")
    wanted = own if completions is None else min(own, completions)
    return pod_set.count if pod_set.count != wanted else None


def bare_manifest(source: JobSource) -> JsonObject:
    """The manifest as it may be applied: without its status and what only a server writes, with its row's uid."""
    manifest: JsonObject = without_owned_keys(source.manifest)
    metadata = {key: value for key, value in manifest["metadata"].items() if key not in _SERVER_METADATA}
    metadata["labels"] = {**(metadata.get("labels") or {}), **common_labels(source)}
    return {
        "apiVersion": source.kind.kind.api_version,
        "kind": source.kind.kind.kind,
        "metadata": metadata,
        "spec": dict(manifest.get("spec") or {}),
    }


def common_labels(source: JobSource) -> dict[str, str]:
    """By which a job's pods are known to be ours."""
    return {MANAGED_LABEL: "true", JOB_UID_LABEL: source.uid}


def admission_labels(workload: AdmittedWorkload, pod_set: PodSetAdmission) -> dict[str, str]:
    """Kueue's labels on started pods; names that are too long for a label are left out."""
    labels = {
        MANAGED_LABEL: "true",
        WORKLOAD_UID_LABEL: workload.uid,
        POD_SET_LABEL: pod_set.name,
        CLUSTER_QUEUE_LABEL: workload.cluster_queue_name,
        LOCAL_QUEUE_LABEL: workload.queue_name,
    }
    return {key: value for key, value in labels.items() if value and len(value) <= _MAX_LABEL_VALUE}


def _merged_selector(own: Mapping[str, str], flavor: Mapping[str, str]) -> dict[str, str]:
    for key, value in flavor.items():
        if own.get(key, value) != value:
            raise CannotStart(f"its node selector asks for {key}={own[key]}, its flavor for {key}={value}")
    return {**own, **flavor}


def _with_updates(own: Mapping[str, str], pod_set: PodSetAdmission, field: str) -> dict[str, str]:
    """The pod set's own values with those of its admission checks. Raises CannotStart where two contradict."""
    merged = dict(own)
    for update in pod_set.updates:
        added: Mapping[str, str] = getattr(update, field)
        for key, value in added.items():
            if merged.setdefault(key, value) != value:
                what = f"{field.replace('_', ' ').removesuffix('s')} {key}={value}"
                raise CannotStart(f"an admission check asks for the {what}, and it is {merged[key]} already")
    return merged


def _added(pod_set: PodSetAdmission, field: str) -> dict[str, str]:
    return {key: value for update in pod_set.updates for key, value in getattr(update, field).items()}


def _added_tolerations(pod_set: PodSetAdmission) -> tuple[Mapping[str, Any], ...]:
    return tuple(toleration for update in pod_set.updates for toleration in update.tolerations)


def _merged_tolerations(
    own: tuple[Mapping[str, Any], ...] | list[Mapping[str, Any]], flavor: tuple[Mapping[str, Any], ...]
) -> list[JsonObject]:
    merged = [dict(entry) for entry in own]
    merged.extend(dict(entry) for entry in flavor if dict(entry) not in merged)
    return merged


def waits_for_us(pod: JsonObject) -> bool:
    """Whether nobody but us will bind the pod: it names us as its scheduler, or has our gate, or is ours and has
    Kueue's."""
    spec = pod["spec"]
    if spec.get("nodeName") or pod["metadata"].get("deletionTimestamp"):
        return False
    gates = {gate["name"] for gate in spec.get("schedulingGates") or ()}
    if gates - ({PLACEMENT_GATE, *KUEUE_GATES} if uid_label(pod, WORKLOAD_UID_LABEL) else {PLACEMENT_GATE}):
        return False
    return bool(gates) or spec.get("schedulerName") == SCHEDULER_NAME
