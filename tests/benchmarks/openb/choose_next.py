"""Which of several waiting workloads goes first, where their queue leaves it open: the one that wastes least.

A workload wastes what the nodes lose by it beyond the devices that it gets (`node_worth`), per device that it gets: a
pod of 810 thousandths of a device wastes the 190 beside it that nobody wants, a pod that completes a device nothing.
With the choice among those who wait, complementary sizes meet, and what leaves rests behind comes last.

The scheduler does not choose so: whose turn it is follows from priority and time. The benchmark's backlog does.
"""

from __future__ import annotations

from collections.abc import Sequence

from scheduling.devices.search.fleet import Fleet
from scheduling.model.placement import PodSetToPlace


def waste(fleet: Fleet, pod_sets: Sequence[PodSetToPlace]) -> float | None:
    """Devices lost beyond those given, per device given; of pods without a device what they lose in devices. None if a
    pod has no place."""
    lost = given = 0.0
    for pod_set in pod_sets:
        price = fleet.price(pod_set)
        if price is None:
            return None
        lost += pod_set.count * price.lost
        given += pod_set.count * price.given
    return (lost - given) / given if given else lost
