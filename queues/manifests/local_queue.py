"""LocalQueue."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from queues.manifests.fair_sharing import DEFAULT_WEIGHT, read_weight, write_weight
from scheduling.manifest import Fields, ObjectMeta, read_metadata, write_metadata
from scheduling.manifest.syntax import dns_subdomain
from scheduling.model.vocabulary import StopPolicy


@dataclass(frozen=True, slots=True)
class LocalQueueSpec:
    """Columns of LocalQueue."""

    meta: ObjectMeta
    cluster_queue_name: str = ""
    stop_policy: str = StopPolicy.NONE
    fair_sharing_weight: Decimal = DEFAULT_WEIGHT


def read_local_queue(top: Fields, version: str) -> LocalQueueSpec:
    """Read a LocalQueue; v1alpha2 has `clusterQueue` only."""
    top.ignore("status")
    meta = read_metadata(top, namespaced=True)
    spec = top.required_fields("spec")
    cluster_queue = spec.text("clusterQueue", syntax=dns_subdomain)
    if version == "v1alpha2":
        queue = LocalQueueSpec(meta, cluster_queue)
    else:
        queue = LocalQueueSpec(meta, cluster_queue, spec.choice("stopPolicy", StopPolicy.NONE), read_weight(spec))
    spec.close()
    return queue


def write_local_queue(spec: LocalQueueSpec) -> dict[str, Any]:
    """The manifest of a LocalQueue."""
    body: dict[str, Any] = {"clusterQueue": spec.cluster_queue_name}
    if spec.stop_policy != StopPolicy.NONE:
        body["stopPolicy"] = spec.stop_policy
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "LocalQueue",
        "metadata": write_metadata(spec.meta),
        "spec": {**body, **write_weight(spec.fair_sharing_weight)},
    }
