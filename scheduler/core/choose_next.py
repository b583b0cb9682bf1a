"""Which of several waiting workloads goes first, where their queue leaves it open: the one that wastes least.

A workload wastes what the nodes lose by it beyond the cards that it gets (`node_worth`), per card that it gets: a pod
of 810 thousandths of a card wastes the 190 beside it that nobody wants, a pod that completes a card nothing. With the
choice among those who wait, complementary sizes meet, and what leaves rests behind comes last.

Nothing of this decides anything by itself: priorities, order and quota are the queue's.
"""

from __future__ import annotations

from collections.abc import Sequence

from scheduler.core.placement import Fleet
from scheduler.core.placement_model import PodSetToPlace


def least_wasteful_first(fleet: Fleet, waiting: Sequence[Sequence[PodSetToPlace]]) -> list[int]:
    """The numbers of those who wait, each given by its pod sets, in the order in which they waste least by what is free
    now; equal ones stay in their order, and those without a node that could take one of their pods are left out.

    Each pod is valued by itself, at the place where it costs least.
    """
    wastes = [waste(fleet, pod_sets) for pod_sets in waiting]
    found = [(each, number) for number, each in enumerate(wastes) if each is not None]
    return [number for _, number in sorted(found)]


def waste(fleet: Fleet, pod_sets: Sequence[PodSetToPlace]) -> float | None:
    """Cards lost beyond those given, per card given; of pods without a card what they lose in cards. None if a pod has
    no place."""
    lost = given = 0.0
    for pod_set in pod_sets:
        price = fleet.price(pod_set)
        if price is None:
            return None
        lost += pod_set.count * price.lost
        given += pod_set.count * price.given
    return (lost - given) / given if given else lost
