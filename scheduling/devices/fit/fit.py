"""Fits one pod to the devices of one node, container by container and request by request.

All code here works on copies of one node's usage. `scheduling.devices.table` scans many nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from scheduling.devices.fit.device_fit import FitContext, RequestRefusal, of_vendor, scored_memory
from scheduling.devices.fit.device_state import DeviceState
from scheduling.devices.fit.go_sort import STABLE_UP_TO, sort_as_go
from scheduling.devices.requests.policy import device_scores
from scheduling.devices.vendors import FITS
from scheduling.model.device import Device, DeviceRequest, DeviceSlice
from scheduling.model.placement import PodDeviceRequest

Containers = tuple[tuple[DeviceSlice, ...], ...]


def fit_pod(
    node: str, states: Sequence[DeviceState], pod: PodDeviceRequest, context: FitContext
) -> tuple[Containers | None, RequestRefusal | None]:
    """Return the slices of each container (init containers first) on this node's devices, or the first refused request.

    Init containers run one after another, so each of them sees the usage before the pod; the usage of the other
    containers adds up.
    """
    held: list[tuple[DeviceSlice, ...]] = []
    for requests in pod.init_containers:
        slices, refused = _fit_container(node, [state.copy() for state in states], requests, pod, context, ())
        if slices is None:
            return None, refused
        held.append(slices)
    working = [state.copy() for state in states]
    for requests in pod.containers:
        taken = tuple(part for container in held[len(pod.init_containers) :] for part in container)
        slices, refused = _fit_container(node, working, requests, pod, context, taken)
        if slices is None:
            return None, refused
        held.append(slices)
    return tuple(held), None


def _fit_container(
    node: str,
    states: list[DeviceState],
    requests: Sequence[DeviceRequest],
    pod: PodDeviceRequest,
    context: FitContext,
    taken: tuple[DeviceSlice, ...],
) -> tuple[tuple[DeviceSlice, ...] | None, RequestRefusal | None]:
    if not requests:
        return (), None
    if not context.policy.ranked:
        _score(states, requests, context)
    held: list[DeviceSlice] = []
    for request in requests:
        vendor = context.vendors[request.vendor]
        constraints = pod.constraints_of(vendor.common_word)
        fit = FITS[vendor.rules.kind](node, request, vendor.rules, constraints, context, (*taken, *held))
        _sort(states, context, fit.numa_bind)
        typed = [state for state in states if of_vendor(state.device, vendor.common_word, context.as_hami)]
        if request.count > len(typed) and not fit.may_repeat(typed):
            return None, RequestRefusal(request, len(typed), Counter())
        picks = fit.pick(typed)
        if isinstance(picks, RequestRefusal):
            return None, picks
        for state, part in picks:
            fit.hold(state, part)
            held.append(part)
    return tuple(held), None


def _sort(states: list[DeviceState], context: FitContext, numa_bind: bool) -> None:
    """Sort the devices into the order of trying.

    HAMi sorts the node's list in place, so devices that tie for the pod's next container keep this order.
    """
    key = context.policy.sort_key(numa_bind)
    if context.as_hami and len(states) > STABLE_UP_TO and not context.policy.ranked:
        states.sort(key=lambda state: state.position)
        sort_as_go(states, lambda left, right: key(left)[:-1] > key(right)[:-1])
        states.reverse()
    else:
        states.sort(key=key)
    if not context.policy.ranked:
        for position, state in enumerate(reversed(states)):
            state.position = position


def _score(states: Sequence[DeviceState], requests: Sequence[DeviceRequest], context: FitContext) -> None:
    used, totals = [], []
    for state in states:
        slots, cores, memory = state.used_slots, state.used_cores, state.used_memory_mib
        for request in requests:
            if _scored(state.device, request, context):
                slots, cores = slots + 1, cores + request.cores_percent
                memory += scored_memory(state.device, request)
        used.append((slots, cores, memory))
        totals.append((state.device.slots, state.device.cores_percent, state.device.memory_mib))
    for state, score in zip(states, device_scores(used, totals, context.weights), strict=True):
        state.score = score


def _scored(device: Device, request: DeviceRequest, context: FitContext) -> bool:
    """Return whether a device's score includes the request.

    HAMi searches the vendor's word in the device's type. NVIDIA registers the model there, so only its usage counts.
    """
    if context.score_includes_request:
        return of_vendor(device, request.vendor, context.as_hami)
    if device.type == request.vendor:
        return True
    return device.vendor == request.vendor and context.vendors[request.vendor].rules.score_includes_request
