"""Kubernetes' validation of a pod's spec, in pods and in templates."""

from __future__ import annotations

import json
from typing import Final

from simulation.api.errors import bad_request, invalid
from simulation.api.objects import JsonObject

_RESTART_POLICIES: Final = ("Always", "Never", "OnFailure")
_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")


def validate_pod_spec(kind: str, name: str, path: str, spec: JsonObject) -> None:
    """Validate the pod spec. Raises ApiError (422), naming the field; 400 for a text of another type, which the server
    cannot decode."""
    _validate_token(kind, name, f"{path}.restartPolicy", spec.get("restartPolicy"), _RESTART_POLICIES)
    if not spec.get("containers"):
        raise invalid(kind, name, f"{path}.containers", "Required value")
    volumes = [volume.get("name") for volume in spec.get("volumes") or ()]
    for field in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(field) or ()):
            _validate_container(kind, name, f"{path}.{field}[{index}]", container, volumes)


def _validate_container(kind: str, name: str, path: str, container: JsonObject, volumes: list[object]) -> None:
    for field in ("name", "image"):
        if not container.get(field):
            raise invalid(kind, name, f"{path}.{field}", "Required value")
    _validate_token(kind, name, f"{path}.imagePullPolicy", container.get("imagePullPolicy"), _PULL_POLICIES)
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        if mount.get("name") not in volumes:
            why = f"Not found: {json.dumps(mount.get('name'))}"
            raise invalid(kind, name, f"{path}.volumeMounts[{index}].name", why)
    resources = container.get("resources") or {}
    for resource, request in (resources.get("requests") or {}).items():
        limit = (resources.get("limits") or {}).get(resource)
        if "/" in resource and str(limit) != str(request):
            why = "must be equal to the limit of a non-overcommit resource"
            raise invalid(kind, name, f"{path}.resources.requests[{resource}]", why)


def _validate_token(kind: str, name: str, path: str, value: object, supported: tuple[str, ...]) -> None:
    if value is None or value == "":  # equivalent to an omitted field
        return
    if not isinstance(value, str):
        raise bad_request(f"cannot unmarshal {json.dumps(value)} into {path} of type string")
    if value not in supported:
        words = ", ".join(map(json.dumps, supported))
        raise invalid(kind, name, path, f"Unsupported value: {json.dumps(value)}: supported values: {words}")
