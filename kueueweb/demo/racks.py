"""The demo's jobs on racks: gangs whose pods must be close to each other, and inference that takes a lent rack back."""

import random
from collections.abc import Mapping
from itertools import cycle, islice
from typing import Any, Final

from kueueweb.demo.jobs import SERVING, TRAINING, manifest
from queues.manifests.kueue_keys import PREFERRED_TOPOLOGY, REQUIRED_TOPOLOGY
from simulation.fleet import RACK, RACKS

_SHAPES: Final = ((2, 8, REQUIRED_TOPOLOGY), (4, 4, REQUIRED_TOPOLOGY), (2, 4, REQUIRED_TOPOLOGY))
_WIDE_SHAPES: Final = ((4, 8, PREFERRED_TOPOLOGY), (8, 1, PREFERRED_TOPOLOGY))
"""Pods, devices of each pod, and whether all pods must be in one rack or only should."""
_WIDE_SHARE: Final = 0.25
_MIN_RUN_SECONDS: Final = 600.0
SERVING_SECONDS: Final = 900.0
"""How long inference needs the rack, in seconds of the cluster's time."""


def training_job(run_seconds: float, chance: random.Random) -> dict[str, Any]:
    """Return a gang of pods on whole devices, in one rack if the gang fits there."""
    shape = chance.choice(_WIDE_SHAPES if chance.random() < _WIDE_SHARE else _SHAPES)
    name = f"{chance.choice(TRAINING.words)}-{chance.getrandbits(32):08x}"
    return _gang(name, shape, max(run_seconds, _MIN_RUN_SECONDS))


def first_gangs(run_seconds: float, chance: random.Random) -> list[dict[str, Any]]:
    """Return gangs of a whole rack each, which fill all racks, also the rack that training only borrows."""
    words = islice(cycle(TRAINING.words), RACKS.count // RACKS.per_rack)
    names = [f"{word}-{chance.getrandbits(16):04x}" for word in words]
    return [_gang(name, _SHAPES[0], run_seconds * (number + 1)) for number, name in enumerate(names)]


def _gang(name: str, shape: tuple[int, int, str], run_seconds: float) -> dict[str, Any]:
    pods, devices, closeness = shape
    return _in_racks(manifest(TRAINING, name, "normal-priority", *_amounts(devices), run_seconds, pods=pods), closeness)


def serving_job(name: str) -> dict[str, Any]:
    """Return two pods that need the whole rack of their tenant, which others borrow."""
    job = manifest(SERVING, name, "high-priority", *_amounts(8), SERVING_SECONDS, pods=2)
    return _in_racks(job, REQUIRED_TOPOLOGY)


def _amounts(devices: int) -> tuple[Mapping[str, str], Mapping[str, str]]:
    limits = {"nvidia.com/gpu": str(devices), "nvidia.com/gpumem": "81920", "nvidia.com/gpucores": "100"}
    return {"cpu": str(4 * devices), "memory": f"{32 * devices}Gi"}, limits


def _in_racks(job: dict[str, Any], closeness: str) -> dict[str, Any]:
    job["spec"]["template"]["metadata"]["annotations"][closeness] = RACK
    return job
