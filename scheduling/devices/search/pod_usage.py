"""A pod's usage of each device over its life, with all containers combined as HAMi does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from operator import add

from scheduling.model.device import DeviceSlice


def peak_usage(
    containers: Iterable[Sequence[DeviceSlice]], init_container_count: int, *, as_hami: bool = False
) -> dict[str, DeviceSlice]:
    """Return a pod's usage of each device: the larger of its largest init container and the sum of its other
    containers. `slots` is the number of containers that use the device: at least 1, and more if one slice takes several
    slots (Enflame, AWS Neuron). There is one combined slice per UUID. If an init container has several MIG instances of
    one device, HAMi counts the largest instance instead of their sum (`as_hami`)."""
    init: dict[str, DeviceSlice] = {}
    rest: dict[str, DeviceSlice] = {}
    for number, container in enumerate(containers):
        of_container: dict[str, DeviceSlice] = {}
        for part in container:
            if as_hami and number < init_container_count and part.uuid in of_container:
                of_container[part.uuid] = _larger(of_container[part.uuid], part)
            else:
                _add(of_container, part)
        for uuid, part in of_container.items():
            if number >= init_container_count:
                _add(rest, part)
            else:
                held = replace(part, slots=max(each.slots for each in container if each.uuid == uuid))
                init[uuid] = _larger(init[uuid], held) if uuid in init else held
    for uuid, part in init.items():
        rest[uuid] = _larger(rest[uuid], part) if uuid in rest else part
    return dict(sorted(rest.items()))


def _add(total: dict[str, DeviceSlice], part: DeviceSlice) -> None:
    so_far = total.get(part.uuid)
    total[part.uuid] = part if so_far is None else _together(so_far, part, add)


def _larger(left: DeviceSlice, right: DeviceSlice) -> DeviceSlice:
    return _together(left, right, max)


def _together(left: DeviceSlice, right: DeviceSlice, amounts: Callable[[int, int], int]) -> DeviceSlice:
    """Two slices of a device combined; the MIG instances of both are in use."""
    instances = (*left.mig_instances, *right.mig_instances)
    return replace(
        left,
        memory_mib=amounts(left.memory_mib, right.memory_mib),
        cores_percent=amounts(left.cores_percent, right.cores_percent),
        slots=amounts(left.slots, right.slots),
        mig=instances[0] if instances else None,
        further_mig=instances[1:],
    )
