"""The demo's second cluster, whose jobs come from the first one by MultiKueue."""

import random
from typing import Any, Final

from kueueweb.demo.jobs import OVERFLOW, manifest

_MEMORY_MIB: Final = ("23040", "46068")


def overflow_job(run_seconds: float, chance: random.Random) -> dict[str, Any]:
    """Return a job on a half or all of one device of the second cluster."""
    half = chance.random() < 0.4
    limits = {
        "nvidia.com/gpu": "1",
        "nvidia.com/gpumem": _MEMORY_MIB[0 if half else 1],
        "nvidia.com/gpucores": "50" if half else "100",
    }
    name = f"{chance.choice(OVERFLOW.words)}-{chance.getrandbits(32):08x}"
    return manifest(OVERFLOW, name, "normal-priority", {"cpu": "4", "memory": "16Gi"}, limits, run_seconds)
