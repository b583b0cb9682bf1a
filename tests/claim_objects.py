"""Objects of dynamic resource allocation for tests: what a driver publishes and what users ask for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Json = dict[str, Any]

DRIVER = "gpu.example.com"


def device_class(name: str = DRIVER, *selectors: str, extended: str = "", created_at: str = "") -> Json:
    spec: Json = {"selectors": [{"cel": {"expression": each}} for each in selectors]}
    if extended:
        spec["extendedResourceName"] = extended
    metadata = {"name": name, "creationTimestamp": created_at} if created_at else {"name": name}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": metadata, "spec": spec}


def driver_class(name: str = DRIVER, **options: Any) -> Json:
    """The class of all devices of the driver."""
    return device_class(name, f'device.driver == "{DRIVER}"', **options)


def device(name: str, model: str = "A100", memory: str = "40Gi", **fields: Any) -> Json:
    return {
        "name": name,
        "attributes": {"model": {"string": model}, "index": {"int": int(name.rpartition("-")[2] or 0)}},
        "capacity": {"memory": {"value": memory}},
        **fields,
    }


def resource_slice(
    node: str, devices: int | Sequence[Json] = 2, *, name: str = "", generation: int = 1, slices: int = 1, **spec: Any
) -> Json:
    """A slice of the pool of a node."""
    found = [device(f"gpu-{index}") for index in range(devices)] if isinstance(devices, int) else list(devices)
    pool = {"name": node or "network", "generation": generation, "resourceSliceCount": slices}
    where = {"nodeName": node} if node else {"allNodes": True}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name or f"{node or 'network'}-{DRIVER}"},
        "spec": {"driver": DRIVER, "pool": pool, **where, "devices": found, **spec},
    }


def request(count: int = 1, *selectors: str, name: str = "gpu", device_class: str = DRIVER, **fields: Any) -> Json:
    exactly = {"deviceClassName": device_class, "allocationMode": "ExactCount", "count": count, **fields}
    if selectors:
        exactly["selectors"] = [{"cel": {"expression": each}} for each in selectors]
    return {"name": name, "exactly": exactly}


def claim_template(name: str = "gpu", *requests: Json, namespace: str = "team", **devices: Any) -> Json:
    spec = {"devices": {"requests": list(requests) or [request()], **devices}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"spec": spec},
    }


def claim(
    name: str, held: Iterable[tuple[str, str]] = (), *, namespace: str = "team", pods: Mapping[str, str] | None = None
) -> Json:
    """A claim that holds these devices, as (node, device), for pods (name -> uid)."""
    results = [{"request": "gpu", "driver": DRIVER, "pool": node, "device": each} for node, each in held]
    status: Json = {"allocation": {"devices": {"results": results}}} if results else {}
    if pods:
        status["reservedFor"] = [{"resource": "pods", "name": pod, "uid": uid} for pod, uid in pods.items()]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"devices": {"requests": [request()]}},
        "status": status,
    }


def pod_spec(*templates: str, by_name: str = "", cpu: str = "1", extended: Mapping[str, str] | None = None) -> Json:
    """A pod spec whose container uses claims made from these templates."""
    claims = [{"name": each, "resourceClaimTemplateName": each} for each in templates]
    if by_name:
        claims.append({"name": by_name, "resourceClaimName": by_name})
    resources: Json = {"requests": {"cpu": cpu, **(extended or {})}}
    if claims:
        resources["claims"] = [{"name": each["name"]} for each in claims]
    spec: Json = {"containers": [{"name": "main", "image": "training", "resources": resources}]}
    return {**spec, "resourceClaims": claims} if claims else spec
