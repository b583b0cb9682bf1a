"""The objects of a shape in a cluster: its queues as Kueue's API has them, and its workloads as Jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from clusters.api_objects import NAMESPACES, NODES, JsonObject, Kind
from clusters.client import ClusterClient
from clusters.jobs.registry import JOB_KINDS
from kueueweb.loadtest.shape import NAMESPACE, Arrival, InvalidShape, Shape, manifests
from queues.manifests.kueue_keys import PRIORITY_CLASS, QUEUE_NAME

JOBS: Final = JOB_KINDS["Job"].resource
MARK: Final = "kueueweb.io/load-test"
"""The label of all objects that a load test makes: only what has it is deleted."""
_RUN_SECONDS: Final = "kueueweb.io/run-seconds"
"""The annotation of a pod by which simulated kubelets end it."""
_ROOM: Final = {"cpu": "64", "memory": "512Gi", "pods": "110"}
_TOPOLOGY_MODES: Final = {
    "required": "kueue.x-k8s.io/podset-required-topology",
    "preferred": "kueue.x-k8s.io/podset-preferred-topology",
    "unconstrained": "kueue.x-k8s.io/podset-unconstrained-topology",
}


def queue_objects(shape: Shape, node_count: int) -> list[JsonObject]:
    """Return the objects that a run needs before its first Job, in the order of their creation, each with the mark.

    * node_count: nodes that simulated kubelets (kwok) take over; a shape with a topology brings its own nodes
      instead.
    """
    objects: list[JsonObject] = [dict(item) for item in manifests(shape)]
    objects += [_priority_class(priority) for priority in sorted({entry.priority for entry in shape.sets})]
    nodes = [item for item in objects if item["kind"] == "Node"]
    others = [item for item in objects if item["kind"] != "Node"]
    if shape.topology:
        if not node_count:
            raise InvalidShape("topology: the shape needs nodes of its own; create them with --nodes 1")
    else:
        others = [_without_labels(item) if item["kind"] == "ResourceFlavor" else item for item in others]
        nodes = [_node(number) for number in range(node_count)]
    return [_marked(item) for item in (*others, *(_simulated(node) for node in nodes))]


def job_of(shape: Shape, arrival: Arrival, image: str) -> JsonObject:
    """Return one workload of the shape as a suspended Job whose pods sleep for its run time."""
    entry = shape.sets[arrival.set_index]
    amounts = {shape.resource: entry.request}
    container = {
        "name": "main",
        "image": image,
        "command": ["sleep", f"{entry.runtime_seconds:g}"],
        "resources": {"requests": amounts, "limits": amounts},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": arrival.name,
            "namespace": NAMESPACE,
            "labels": {QUEUE_NAME: arrival.cluster_queue, PRIORITY_CLASS: _class_name(entry.priority), MARK: "true"},
        },
        "spec": {
            "suspend": True,
            "parallelism": entry.pods,
            "completions": entry.pods,
            "backoffLimit": 0,
            "template": {
                "metadata": {
                    "annotations": {_RUN_SECONDS: f"{entry.runtime_seconds:g}", **_topology_request(entry.topology)}
                },
                "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [container]},
            },
        },
    }


def require_free_names(client: ClusterClient, objects: list[JsonObject]) -> None:
    """Raise `InvalidShape` if the namespace of the load test, or an object with one of these names, belongs to others,
    or if the server does not serve a kind."""
    found = client.get(NAMESPACES, "", NAMESPACE)
    if found is not None and not _has_mark(found):
        raise InvalidShape(
            f"metadata.namespace: Invalid value: {NAMESPACE!r}: the cluster has a namespace of that name without the "
            f"label {MARK}; the load test would fill it with Jobs and delete it"
        )
    names: dict[Kind, set[str]] = {}
    for kind, item in zip(_kinds(client, objects), objects, strict=True):
        if not kind.namespaced and kind != NAMESPACES:
            names.setdefault(kind, set()).add(item["metadata"]["name"])
    for kind, wanted in names.items():
        for item in client.list(kind).items:
            name = item["metadata"]["name"]
            if name in wanted and not _has_mark(item):
                raise InvalidShape(
                    f"metadata.name: Invalid value: {name!r}: the cluster has a {kind.kind} of that name without the "
                    f"label {MARK}; the load test would overwrite it and delete it"
                )


def _has_mark(item: JsonObject) -> bool:
    return MARK in (item["metadata"].get("labels") or {})


def create_objects(client: ClusterClient, objects: list[JsonObject]) -> None:
    """Create the objects. Raises ClusterError, and `InvalidShape` if the server does not serve a kind."""
    for kind, item in zip(_kinds(client, objects), objects, strict=True):
        client.apply(kind, item)
        if kind == NODES:
            client.patch(NODES, "", item["metadata"]["name"], {"status": item["status"]}, subresource="status")


def delete_objects(client: ClusterClient, objects: list[JsonObject]) -> None:
    """Delete them, the last created first. Raises ClusterError."""
    for kind, item in reversed([*zip(_kinds(client, objects), objects, strict=True)]):
        client.delete(kind, str(item["metadata"].get("namespace", "")), item["metadata"]["name"])


def _kinds(client: ClusterClient, objects: list[JsonObject]) -> Iterator[Kind]:
    found: dict[tuple[str, str], Kind] = {}
    for item in objects:
        key = item["apiVersion"], item["kind"]
        if key not in found:
            kind = client.kind_named(*key)
            if kind is None:
                raise InvalidShape(
                    f"apiVersion: Not found: the cluster does not serve {key[1]} of {key[0]}; if kueueweb decides "
                    f"without serving Kueue's objects, name its server with --server, to create the queues there"
                )
            found[key] = kind
        yield found[key]


def _class_name(priority: int) -> str:
    return f"load-{priority}"


def _priority_class(priority: int) -> JsonObject:
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "WorkloadPriorityClass",
        "metadata": {"name": _class_name(priority)},
        "value": priority,
    }


def _without_labels(flavor: JsonObject) -> JsonObject:
    """Return the flavor without node labels: nodes of a cluster in use have no label of the load test."""
    return {**flavor, "spec": {}}


def _node(number: int) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"load-node-{number}"},
        "status": {
            "allocatable": dict(_ROOM),
            "capacity": dict(_ROOM),
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _simulated(node: JsonObject) -> JsonObject:
    metadata = {**node["metadata"], "annotations": {"kwok.x-k8s.io/node": "fake"}}
    return {**node, "metadata": metadata}


def _marked(item: JsonObject) -> JsonObject:
    metadata = item["metadata"]
    return {**item, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), MARK: "true"}}}


def _topology_request(topology: Mapping[str, Any]) -> dict[str, str]:
    if not topology:
        return {}
    mode = topology["mode"]
    if mode == "unconstrained":
        return {_TOPOLOGY_MODES[mode]: "true"}
    # Balanced placement is Kueue's gate on top of `preferred`.
    return {_TOPOLOGY_MODES["required" if mode == "required" else "preferred"]: topology["level"]}
