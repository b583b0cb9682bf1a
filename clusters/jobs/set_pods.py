"""The pods that a StatefulSet or LeaderWorkerSet has in the cluster."""

from __future__ import annotations

from collections.abc import Sequence

from clusters.api_objects import PODS, JsonObject
from clusters.client import ClusterClient
from clusters.jobs.families.serving import ServingKind
from clusters.jobs.framework.manifest import controller_of, namespace_of, uid_of
from clusters.jobs.live_pods import Maker
from clusters.jobs.registry import JOB_KINDS


def pods_of_set(
    client: ClusterClient, kind: ServingKind, there: JsonObject, index: str | None = None
) -> tuple[Maker, Sequence[JsonObject]]:
    """Return the set with the objects from which it creates its pods, and its pods: only those of the group with that
    index, or all. Raises ClusterError."""
    selector, namespace = kind.selector_of_pods(there), namespace_of(there)
    parts: Sequence[JsonObject] = ()
    if kind.part_kind:
        parts = client.list(JOB_KINDS[kind.part_kind].resource, namespace, label_selector=selector).items
    if kind.group_label and index is not None:
        selector += f",{kind.group_label}={index}"
    # Anyone can set a label, and the pass would let pods run that no known StatefulSet creates.
    makers = {uid_of(each) for each in (there, *parts)}
    listed = client.list(PODS, namespace, label_selector=selector).items
    pods = [pod for pod in listed if (controller_of(pod) or {}).get("uid") in makers]
    return Maker(kind, there, parts), pods
