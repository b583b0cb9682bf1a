"""Waiting times as counts in buckets. Histograms add up: a percentile over months is right.

Eight buckets to a doubling: a percentile is off by less than a tenth.
"""

import math
from collections.abc import Mapping
from typing import Final

_BUCKETS_PER_DOUBLING: Final = 8


def bucket_of(seconds: float) -> int:
    """Return the number of the bucket; 0 is for less than a second."""
    return 0 if seconds < 1 else 1 + math.floor(_BUCKETS_PER_DOUBLING * math.log2(seconds))


def bounds_of(bucket: int) -> tuple[float, float]:
    """Return the bounds of a bucket in seconds."""
    if bucket <= 0:
        return (0.0, 1.0)
    return (2 ** ((bucket - 1) / _BUCKETS_PER_DOUBLING), 2 ** (bucket / _BUCKETS_PER_DOUBLING))


def percentile(counts: Mapping[int, float], fraction: float) -> float | None:
    """Return the time that this fraction did not exceed, interpolated linearly within a bucket; None if there are no
    values."""
    total = sum(counts.values())
    if total <= 0:
        return None
    wanted, below = fraction * total, 0.0
    for bucket in sorted(counts):
        if below + counts[bucket] >= wanted:
            low, high = bounds_of(bucket)
            return low + (high - low) * (wanted - below) / counts[bucket]
        below += counts[bucket]
    return bounds_of(max(counts))[1]
