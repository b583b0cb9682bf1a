"""Completes pods as HAMi's webhook does, for pods that the webhook skips: completes limits, environment and runtime
class.

The pods that we place carry a label that makes HAMi skip them, so the values that its device plugins expect are written
here. Quota counts the limits as submitted, as in Kueue, because a workload is created before any pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from scheduling.devices.requests.requests import container_reader, pod_device_request
from scheduling.model.placement import DeviceRequestProblem
from scheduling.model.vendor import DeviceVendor, PodAdditions

_CONTAINERS = ("initContainers", "containers")


def completed_pod(pod: Mapping[str, Any], vendors: Iterable[DeviceVendor]) -> dict[str, Any]:
    """Return a copy of a pod or pod template, in manifest form, as HAMi's webhook would admit it.

    Containers get missing limits and the environment variables that their vendor's devices need. Nothing that the pod
    states is overwritten, except amounts that the webhook rounds. A pod without devices is unchanged.
    """
    ordered = sorted(vendors, key=lambda vendor: vendor.common_word)
    request = pod_device_request(pod, ordered)
    if not request.asks_for_devices:
        return dict(pod)
    annotations = (pod.get("metadata") or {}).get("annotations") or {}
    asked = {request.vendor for container in (*request.init_containers, *request.containers) for request in container}
    spec = dict(pod.get("spec") or {})
    for key in _CONTAINERS:
        if spec.get(key):
            spec[key] = [_completed(container, annotations, ordered, asked) for container in spec[key]]
    for vendor in ordered:
        if vendor.common_word in asked and vendor.additions.runtime_class:
            spec.setdefault("runtimeClassName", vendor.additions.runtime_class)
    return {**pod, "spec": spec}


def _completed(
    container: Mapping[str, Any], annotations: Mapping[str, str], vendors: Sequence[DeviceVendor], asked: set[str]
) -> dict[str, Any]:
    resources = container.get("resources") or {}
    limits, requests = dict(resources.get("limits") or {}), dict(resources.get("requests") or {})
    added: dict[str, str] = {}
    problems: list[DeviceRequestProblem] = []
    for vendor in vendors:
        reader = container_reader(container, annotations, vendor, limits, problems)
        uses = reader is not None and reader.request() is not None
        added |= _variables(container, vendor, limits, uses=uses, in_pod=vendor.common_word in asked)
        names = vendor.resources.names & limits.keys()
        requests |= {name: limits[name] for name in names if uses and (name in requests or requests)}
    found = dict(container)
    if limits != (resources.get("limits") or {}):
        found["resources"] = {**resources, "limits": limits, **({"requests": requests} if requests else {})}
    env = list(container.get("env") or ())
    present = {variable.get("name") for variable in env}
    env += [{"name": name, "value": value} for name, value in added.items() if name not in present]
    return {**found, "env": env} if env else found


def _variables(
    container: Mapping[str, Any], vendor: DeviceVendor, limits: Mapping[str, Any], *, uses: bool, in_pod: bool
) -> dict[str, str]:
    """Return the variables that a container gets for a vendor whose devices it, or another container of its
    pod, uses."""
    additions: PodAdditions = vendor.additions
    found = {}
    if additions.core_policy_env and additions.core_policy not in ("", "default") and in_pod:
        found[additions.core_policy_env] = additions.core_policy
    if not uses:
        if additions.overwrite_env and additions.hiding_env:
            found[additions.hiding_env] = additions.hiding_value
        return found
    if additions.priority_env and vendor.resources.priority in limits:
        found[additions.priority_env] = str(limits[vendor.resources.priority])
    if additions.container_name_env:
        found[additions.container_name_env] = str(container.get("name") or "")
    return found
