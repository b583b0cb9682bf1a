"""The meaning of an admission for pods (pure): their owners, their indexes, and their nodes.

Combines Kueue's contract (labels that name the queue that admitted a job) and HAMi's (annotations that name the
slices).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Any, Final
from uuid import UUID

from clusters.api_objects import JsonObject
from clusters.jobs.framework.context import JobContext
from clusters.jobs.framework.identity import is_elastic
from clusters.jobs.framework.job_kind import JobKind
from clusters.jobs.framework.syntax import is_label
from clusters.jobs.owned_keys import CLUSTER_QUEUE_LABEL as CLUSTER_QUEUE_LABEL
from clusters.jobs.owned_keys import JOB_UID_LABEL as JOB_UID_LABEL
from clusters.jobs.owned_keys import LOCAL_QUEUE_LABEL as LOCAL_QUEUE_LABEL
from clusters.jobs.owned_keys import MANAGED_LABEL as MANAGED_LABEL
from clusters.jobs.owned_keys import POD_SET_LABEL as POD_SET_LABEL
from clusters.jobs.owned_keys import REPLICA_ANNOTATION as REPLICA_ANNOTATION
from clusters.jobs.owned_keys import WORKLOAD_ANNOTATION as WORKLOAD_ANNOTATION
from clusters.jobs.owned_keys import WORKLOAD_UID_LABEL as WORKLOAD_UID_LABEL
from clusters.jobs.owned_keys import without_owned_keys
from clusters.jobs.reading import NO_CLUSTER
from gpus.annotations.allocation import ALLOCATING, BIND_PHASE
from queues.manifests import kueue_keys as keys
from scheduling.model.admission_check import PodSetUpdate
from scheduling.model.topology import TopologyAssignment, TopologyRequest
from scheduling.model.vendor import DeviceVendor

NO_LABELS: Final[Mapping[str, str]] = {}
PLACEMENT_GATE: Final = "kueueweb.io/placement"
"""The scheduling gate of pods that another scheduler would bind before we have chosen: it goes when we have."""
KUEUE_GATES: Final = frozenset({keys.ADMISSION_GATE, keys.TOPOLOGY_GATE, keys.ELASTIC_JOB_GATE})
"""The gates that Kueue's webhook sets on pods; on kueueweb's pods they are removed together with its own."""

QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
HOSTNAME_LABEL: Final = "kubernetes.io/hostname"
HAMI_WEBHOOK_LABEL: Final = "hami.io/webhook"
HAMI_KEEPS_AWAY: Final = "ignore"
"""The value of the label on pods that HAMi's webhook leaves alone."""

_MAX_LABEL_VALUE: Final = 63
_MAX_NUMBER: Final = 9
_OFFSET: Final = re.compile(r"[+-]?[0-9]{1,9}", re.ASCII)
_SERVER_METADATA: Final = (
    "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generateName", "generation",
    "managedFields", "ownerReferences", "resourceVersion", "selfLink", "uid",
)  # fmt: skip


def uid_label(item: Mapping[str, Any], key: str) -> str:
    """Return a uid from a label, in its canonical form. Anyone can write a label: an invalid uid becomes ""."""
    try:
        return str(UUID(str((item["metadata"].get("labels") or {}).get(key, ""))))
    except ValueError:
        return ""


def replica_of(pod: Mapping[str, Any]) -> int | None:
    """Return the replica number of a pod in its pod set; None if it has none yet, or the annotation is not a number."""
    text = str((pod["metadata"].get("annotations") or {}).get(REPLICA_ANNOTATION, ""))
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MAX_NUMBER else None


class CannotStart(Exception):
    """The pods can't run with the requirements of their flavors (Kueue finishes such a workload with FailedToStart)."""


@dataclass(frozen=True, slots=True)
class PodSetAdmission:
    """The assignment of a pod set.

    * count: the admitted number of pods.
    * node_labels, tolerations: of its flavors, merged.
    * nodes: the node of each replica where we chose them, "" for one that an elastic job gave up; empty if the
      cluster's own scheduler does. hosts: their host names, where these are not the nodes' names.
    * with_devices: its pods get devices from us too, so no other scheduler may bind them.
    * topology: the domains that its pods were assigned, if any; topology_request: how they state their ranks;
      rank_offset: the rank of its first pod, as it states it.
    * updates: the additions of its admission checks to its pods.
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
    rank_offset: int = 0

    def host(self, node: str) -> str:
        """Return the value of the host name label by which pods are tied to a node."""
        return self.hosts.get(node, node)

    @property
    def tied_to(self) -> str:
        """Return the host that all pods can be tied to in their template; "" if each pod has its own host, or may get
        another one."""
        if self.with_devices or self.topology is not None or len(set(self.nodes)) != 1:
            return ""
        return self.host(self.nodes[0])

    @property
    def replicas(self) -> Sequence[int]:
        """Return the numbers that its pods may have."""
        if not self.nodes:
            return range(self.count)
        return [replica for replica, node in enumerate(self.nodes) if node]


def rank_offset(pod: Mapping[str, Any], pod_set: PodSetAdmission) -> int | None:
    """Return the index that the first pod of the pod set states; None if the pod's annotation is not a number."""
    text = str((pod["metadata"].get("annotations") or {}).get(keys.POD_INDEX_OFFSET, "0"))
    own = int(text) if _OFFSET.fullmatch(text) else None
    return None if own is None else pod_set.rank_offset + own


@dataclass(frozen=True, slots=True)
class AdmittedWorkload:
    """The parts of a workload and its admission that are pushed to the cluster."""

    name: str
    uid: str
    queue_name: str
    cluster_queue_name: str
    pod_sets: tuple[PodSetAdmission, ...]
    slice_name: str = ""
    """The first of the workload slices of an elastic job."""


@dataclass(frozen=True, slots=True)
class JobSource:
    """A job as submitted, the uid of its row, and whether another client made it in the cluster.

    * pod_set: of a pod of a group, the pod set that it belongs to; else its workload has one only.
    * ended, leaving: of a pod of a group, whether it has ended, and whether it must be removed.
    * vendors: the vendors whose devices kueueweb may assign to its pods; its own pods are completed as HAMi's webhook
      would.
    * hami_binds: HAMi's webhook and scheduler handle its pods with devices, where we chose.
    * context: the objects and settings that its kind's rules look up.
    """

    kind: JobKind
    manifest: Mapping[str, Any]
    uid: str
    found_in_cluster: bool = False
    vendors: tuple[DeviceVendor, ...] = ()
    pod_set: str = ""
    ended: bool = False
    leaving: bool = False
    hami_binds: bool = False
    context: JobContext = NO_CLUSTER

    @property
    def namespace(self) -> str:
        return str(self.manifest["metadata"]["namespace"])

    @property
    def name(self) -> str:
        return str(self.manifest["metadata"]["name"])

    @property
    def elastic(self) -> bool:
        """Whether it may change its size while it runs (Kueue's elastic jobs)."""
        return self.kind.elastic and is_elastic(self.manifest)


def placed_pod(pod: Mapping[str, Any], workload: AdmittedWorkload, replica: int, hami: Mapping[str, str]) -> JsonObject:
    """Return the merge patch that makes a pod a replica of a workload: its labels, its number and its slices'
    annotations."""
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
    """Return the merge patch that removes kueueweb's gate and Kueue's from a pod and ties it to its node, or to its
    flavors' nodes in its topology domain; None if the pod has no gate."""
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


def bare_manifest(source: JobSource) -> JsonObject:
    """Return the manifest ready to be applied: without its status and server-side fields, with its row's uid."""
    manifest: JsonObject = without_owned_keys(source.manifest)
    metadata = {key: value for key, value in manifest["metadata"].items() if key not in _SERVER_METADATA}
    metadata["labels"] = {**(metadata.get("labels") or {}), **common_labels(source)}
    return {
        "apiVersion": source.kind.api_version,
        "kind": source.kind.kind,
        "metadata": metadata,
        "spec": dict(manifest.get("spec") or {}),
    }


def common_labels(source: JobSource) -> dict[str, str]:
    """Return the label that marks a job's pods as kueueweb's."""
    return {MANAGED_LABEL: "true", JOB_UID_LABEL: source.uid}


def admission_labels(workload: AdmittedWorkload, pod_set: PodSetAdmission) -> dict[str, str]:
    """Return Kueue's labels on started pods. Names that are not valid label values are left out."""
    labels = {
        MANAGED_LABEL: "true",
        WORKLOAD_UID_LABEL: workload.uid,
        POD_SET_LABEL: pod_set.name,
        CLUSTER_QUEUE_LABEL: workload.cluster_queue_name,
        LOCAL_QUEUE_LABEL: workload.queue_name,
    }
    if not is_label(workload.cluster_queue_name):
        del labels[CLUSTER_QUEUE_LABEL]
    return {key: value for key, value in labels.items() if value and len(value) <= _MAX_LABEL_VALUE}


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


def tied_host(pod: JsonObject) -> str:
    """Return the host for which a pod was ungated before it was bound; "" for any other pod."""
    spec = pod["spec"]
    if spec.get("schedulingGates") or spec.get("nodeName") or pod["metadata"].get("deletionTimestamp"):
        return ""
    return str((spec.get("nodeSelector") or {}).get(HOSTNAME_LABEL, ""))


def waits_for_us(pod: JsonObject) -> bool:
    """Return whether only kueueweb will bind the pod: it has only kueueweb's gate, or kueueweb created it and it has
    only Kueue's gate. An interrupted sweep leaves a pod without gates whose devices are chosen and which has no node
    yet."""
    spec = pod["spec"]
    if spec.get("nodeName") or pod["metadata"].get("deletionTimestamp"):
        return False
    if not spec.get("schedulingGates"):
        noted = pod["metadata"].get("annotations") or {}
        return bool(uid_label(pod, WORKLOAD_UID_LABEL)) and noted.get(BIND_PHASE) == ALLOCATING
    gates = {gate["name"] for gate in spec.get("schedulingGates") or ()}
    ours = uid_label(pod, WORKLOAD_UID_LABEL) or uid_label(pod, JOB_UID_LABEL)
    return bool(gates) and gates <= ({PLACEMENT_GATE, *KUEUE_GATES} if ours else {PLACEMENT_GATE})
