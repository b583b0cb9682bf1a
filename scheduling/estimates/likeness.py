"""Groups of workloads whose run times are alike: by namespace, queue, name and shape, backing off."""

import re
from collections.abc import Mapping
from typing import Final

from scheduling.estimates.snapshot import Levels

_HASH: Final = re.compile(r"-[0-9a-f]{5}$")
"""The suffix that Kueue adds to a job's name to make the name of its workload."""
_NUMBERED: Final = re.compile(r"(?:[-._][a-z]*[0-9][a-z0-9]*|(?<=[a-z])[0-9]+)$")
_NOT_OF_SHAPE: Final = frozenset({"pods", "device"})


def name_stem(workload: str) -> str:
    """Return the part of a workload's name that its repetitions share: without a hash and numbered parts at its end.

    A name that is only a number is its own stem.
    """
    stem = _HASH.sub("", workload) or workload
    while (shorter := _NUMBERED.sub("", stem)) != stem and shorter:
        stem = shorter
    return stem


def like_levels(
    namespace: str, local_queue: str, cluster_queue: str, workload: str, amounts: Mapping[str, int]
) -> Levels:
    """Return the groups of a workload, the narrowest first. `amounts` are its total requests, in base units."""
    shape = tuple(sorted((name, int(amount)) for name, amount in amounts.items() if name not in _NOT_OF_SHAPE))
    stem = name_stem(workload)
    return (
        ("job", namespace, local_queue, stem, shape),
        ("jobs", namespace, local_queue, stem),
        ("queue", cluster_queue, shape),
        (),
    )
