"""The parts of a request to the Kubernetes API, read from its path and query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from simulation.api.errors import bad_request, no_such_path
from simulation.api.resources import Resource, find

_NAMESPACE_SUBRESOURCES = ("status", "finalize")


@dataclass(frozen=True, slots=True)
class Target:
    """One resource, object or subresource. namespace "" on a namespaced resource means all namespaces."""

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def parse_target(path: str) -> Target:
    """Parse `/api/v1/namespaces/NS/pods/NAME/status` and similar paths. Raises ApiError (404) for paths that are not
    served."""
    parts = [part for part in path.split("/") if part]
    if parts[:1] == ["api"] and len(parts) >= 3:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[:1] == ["apis"] and len(parts) >= 4:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        raise no_such_path(path)
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in _NAMESPACE_SUBRESOURCES:
        namespace, rest = rest[1], rest[2:]
    resource = find(group, version, rest[0])
    if resource is None or len(rest) > 3 or (namespace and not resource.namespaced):
        raise no_such_path(path)
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    if subresource and subresource not in resource.subresources:
        raise no_such_path(path)
    if name and resource.namespaced and not namespace:
        raise no_such_path(path)
    return Target(resource, namespace, name, subresource)


def boolean(query: Mapping[str, str], name: str) -> bool:
    """Read a flag such as `watch`; absent means false. Raises ApiError (400) for another word."""
    text = query.get(name, "")
    if text.lower() in ("", "false", "0", "f"):
        return False
    if text.lower() in ("true", "1", "t"):
        return True
    raise bad_request(f"{name} must be true or false, not {text!r}")


def integer(query: Mapping[str, str], name: str) -> int | None:
    """Read a non-negative number; absent means None. Raises ApiError (400) for anything else."""
    text = query.get(name, "")
    if not text:
        return None
    if not text.isdigit():
        raise bad_request(f"{name} must be a whole number, not {text!r}")
    return int(text)


def is_dry_run(query: Mapping[str, str]) -> bool:
    """Read dryRun=All. Raises ApiError (400) for another value."""
    text = query.get("dryRun", "")
    if text not in ("", "All"):
        raise bad_request(f'Invalid value: "{text}": dryRun takes "All"')
    return text == "All"
