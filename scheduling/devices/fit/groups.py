"""Groups devices by a shared property: a network, an adapter, a link zone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from scheduling.devices.fit.device_state import Pick


def by_attribute(picks: Iterable[Pick], attribute: str) -> list[list[Pick]]:
    """Return the devices grouped by the value of an attribute, in order of first appearance. Each device without the
    attribute is a group of its own, at the end."""
    groups: dict[str, list[Pick]] = {}
    strays: list[list[Pick]] = []
    for pick in picks:
        value = pick[0].device.attributes.get(attribute)
        if value is None:
            strays.append([pick])
        else:
            groups.setdefault(value, []).append(pick)
    return [*groups.values(), *strays]


def taken_from(groups: Sequence[Sequence[Pick]], count: int) -> list[Pick]:
    """Return the first `count` devices of the groups, in order."""
    return [pick for group in groups for pick in group][:count]
