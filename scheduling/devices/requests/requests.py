"""Translates a pod's resource limits and annotations into device requests, as HAMi's webhook and parser do.

The webhook completes the limits first (a missing count, the cores of a whole device); the parser then reads limits, or
requests where a limit is missing. Values that HAMi would refuse or silently ignore are reported as problems, so that a
caller can refuse them with a message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from scheduling.devices.requests.limits import ContainerReader
from scheduling.devices.requests.policy import DEVICE_POLICIES, NODE_POLICIES
from scheduling.model.device import HAMI_CORE_MODE, DeviceRequest
from scheduling.model.placement import (
    DeviceConstraints,
    DeviceRequestProblem,
    PodDeviceRequest,
    ScoringWeights,
)
from scheduling.model.vendor import DeviceVendor

NODE_POLICY_ANNOTATION = "hami.io/node-scheduler-policy"
DEVICE_POLICY_ANNOTATION = "hami.io/gpu-scheduler-policy"
SCORING_WEIGHTS_ANNOTATION = "hami.io/device-scoring-weights"

QOS_POLICIES = ("best-effort", "fixed-share", "burst-share")
"""QoS policies that a device's tenants may have; the default comes first (MetaX sGPU)."""
ONLINE, OFFLINE = "online", "offline"
APP_CLASSES = (ONLINE, OFFLINE)
"""Online pods suspend offline ones on their device (MetaX sGPU)."""

_TRUE_WORDS = frozenset({"1", "t", "T", "true", "TRUE", "True"})


def pod_device_request(pod: Mapping[str, Any], vendors: Iterable[DeviceVendor]) -> PodDeviceRequest:
    """Return the devices that a pod requests (a `v1.Pod` or a pod template, in manifest form).

    Vendors are taken in the order of their words. Memory of a request is in MiB, cores in percent points.
    """
    spec = pod.get("spec") or {}
    annotations = (pod.get("metadata") or {}).get("annotations") or {}
    ordered = sorted(vendors, key=lambda vendor: vendor.common_word)
    problems: list[DeviceRequestProblem] = []
    init_containers = _requests_per_container(spec.get("initContainers") or (), annotations, ordered, problems)
    containers = _requests_per_container(spec.get("containers") or (), annotations, ordered, problems)
    asked = {request.vendor for container in (*init_containers, *containers) for request in container}
    if asked:
        problems.extend(_pod_problems(spec))
        problems.extend(_policy_problems(annotations))
    return PodDeviceRequest(
        init_containers,
        containers,
        annotations.get(NODE_POLICY_ANNOTATION) or None,
        annotations.get(DEVICE_POLICY_ANNOTATION) or None,
        _weights(annotations.get(SCORING_WEIGHTS_ANNOTATION), problems),
        tuple(
            (vendor.common_word, _constraints(annotations, vendor, problems))
            for vendor in ordered
            if vendor.common_word in asked
        ),
        tuple(problems),
    )


def device_resource_names(vendors: Iterable[DeviceVendor]) -> frozenset[str]:
    """Return the resource names that vendors manage. Devices limit them, not a node's allocatable amounts."""
    return frozenset().union(*(vendor.resources.names for vendor in vendors))


def parse_scoring_weights(text: str) -> ScoringWeights:
    """Read `slot=1,core=1,memory=1`. Raises ValueError unless all three are given once, >= 0, and one is above 0."""
    weights: dict[str, int] = {}
    for entry in text.split(","):
        name, _, value = (part.strip() for part in entry.partition("="))
        if name not in ("slot", "core", "memory") or name in weights:
            raise ValueError(f"expected slot, core and memory once each, not {entry!r}")
        if not re.fullmatch(r"[0-9]+", value):
            raise ValueError(f"the weight of {name} must be a non-negative integer, not {value!r}")
        weights[name] = int(value)
    if len(weights) != 3 or not any(weights.values()):
        raise ValueError("slot, core and memory must all be given, one of them above 0")
    return ScoringWeights(**weights)


def _pod_problems(spec: Mapping[str, Any]) -> Iterator[DeviceRequestProblem]:
    """Yield the problems for which HAMi's webhook refuses a pod with devices."""
    node = spec.get("nodeName")
    if node:
        yield DeviceRequestProblem(
            "",
            "spec.nodeName",
            str(node),
            "a pod with devices must not set its node",
            refused=True,
        )
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        if (container.get("securityContext") or {}).get("privileged"):
            name = str(container.get("name") or "")
            message = "a pod with devices must not have a privileged container, which sees all devices of its node"
            yield DeviceRequestProblem(name, "securityContext.privileged", "true", message, refused=True)


def _policy_problems(annotations: Mapping[str, str]) -> Iterator[DeviceRequestProblem]:
    """Misspelt policies. HAMi silently replaces them by its default."""
    for key, known in ((NODE_POLICY_ANNOTATION, NODE_POLICIES), (DEVICE_POLICY_ANNOTATION, DEVICE_POLICIES)):
        text = annotations.get(key) or ""
        if text and any(word.strip() not in known for word in text.split(",")):
            yield DeviceRequestProblem("", key, text, f"it must be one of {', '.join(known)}", refused=False)


def _requests_per_container(
    containers: Iterable[Mapping[str, Any]],
    annotations: Mapping[str, str],
    vendors: Sequence[DeviceVendor],
    problems: list[DeviceRequestProblem],
) -> tuple[tuple[DeviceRequest, ...], ...]:
    found = []
    for container in containers:
        requests = (_container_request(container, annotations, vendor, problems) for vendor in vendors)
        found.append(tuple(request for request in requests if request is not None))
    return tuple(found)


def _container_request(
    container: Mapping[str, Any],
    annotations: Mapping[str, str],
    vendor: DeviceVendor,
    problems: list[DeviceRequestProblem],
) -> DeviceRequest | None:
    resources = container.get("resources") or {}
    limits = dict(resources.get("limits") or {})
    reader = container_reader(container, annotations, vendor, limits, problems)
    return None if reader is None else reader.request()


def container_reader(
    container: Mapping[str, Any],
    annotations: Mapping[str, str],
    vendor: DeviceVendor,
    limits: dict[str, Any],
    problems: list[DeviceRequestProblem],
) -> ContainerReader | None:
    """Return the reader of one vendor's part of a container, which completes these limits; None if the container
    requests none of the vendor's resources."""
    requests = (container.get("resources") or {}).get("requests") or {}
    if not vendor.resources.names & (limits.keys() | requests.keys()):
        return None
    return ContainerReader(
        str(container.get("name") or ""),
        vendor,
        limits,
        requests,
        problems,
        soft_split=annotations.get(vendor.annotations.mode) == HAMI_CORE_MODE,
        single_device=bool(annotations.get(vendor.annotations.app_class)),
    )


def _constraints(
    annotations: Mapping[str, str], vendor: DeviceVendor, problems: list[DeviceRequestProblem]
) -> DeviceConstraints:
    keys = vendor.annotations
    app_class = _one_of(annotations, keys.app_class, APP_CLASSES, problems)
    qos_policy = "" if app_class == ONLINE else _one_of(annotations, keys.qos_policy, QOS_POLICIES, problems)
    if keys.qos_policy and not qos_policy:
        qos_policy = QOS_POLICIES[0]
    zones = annotations.get(keys.topology_aware) if keys.topology_aware else None
    return DeviceConstraints(
        _words(annotations.get(keys.use_type)),
        _words(annotations.get(keys.nouse_type)),
        _in_both(_words(annotations.get(keys.use_uuid)), _words(annotations.get(keys.other_use_uuid))),
        _words(annotations.get(keys.nouse_uuid)) + _words(annotations.get(keys.other_nouse_uuid)),
        (annotations.get(keys.numa_bind) or "") in _TRUE_WORDS,
        annotations.get(keys.mode),
        "" if app_class == ONLINE else qos_policy,
        app_class,
        vendor.rules.zones_by_default if zones is None else zones in _TRUE_WORDS,
    )


def _one_of(
    annotations: Mapping[str, str], key: str, allowed: Sequence[str], problems: list[DeviceRequestProblem]
) -> str:
    """Return the annotation's value, "" if it is absent. HAMi's webhook refuses values that are not allowed."""
    text = (annotations.get(key) or "") if key else ""
    if not text or text in allowed:
        return text
    problems.append(DeviceRequestProblem("", key, text, f"{key} must be one of {', '.join(allowed)}", refused=True))
    return ""


def _in_both(left: tuple[str, ...], right: tuple[str, ...]) -> tuple[str, ...]:
    """Return the intersection of two lists of wanted UUIDs. An empty list accepts any device; an empty UUID matches
    none."""
    if not left or not right:
        return left or right
    return tuple(uuid for uuid in left if uuid in right) or ("",)


def _words(text: str | None) -> tuple[str, ...]:
    return tuple(word for word in (part.strip() for part in (text or "").split(",")) if word)


def _weights(text: str | None, problems: list[DeviceRequestProblem]) -> ScoringWeights:
    if text is None:
        return ScoringWeights()
    try:
        return parse_scoring_weights(text)
    except ValueError as error:
        problems.append(DeviceRequestProblem("", SCORING_WEIGHTS_ANNOTATION, text, str(error), refused=True))
        return ScoringWeights()
