"""The demo's story: events that its stream of jobs does not bring by itself. Pure, given a random generator.

Its seconds are real ones since the start of the jobs, so that a visitor sees the events soon at any time scale.
"""

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kueueweb.demo.jobs import RESEARCH, SERVING, TRAINING, Tenant, manifest
from kueueweb.demo.racks import first_gangs, serving_job
from queues.manifests.kueue_keys import BY_JOB_FLOW, START_AFTER
from simulation.controllers.device_plugin import NVIDIA_REGISTER
from simulation.fleet import MIXED, SEVERAL, example_fleet

_FLEETS: Final = (SEVERAL, MIXED)
_PIPELINE: Final = "pipeline"
WHOLE_NODE: Final = "whole-node-training"
RECLAIM: Final = "urgent-serving"
_FIRST_GANG_SECONDS: Final = 1_200.0
"""The run time of the first gang, in seconds of the cluster's time; the others run longer, so that they end apart."""
_FAILING_NODE: Final = "gpu-node-03"
_FAILING_INDEX: Final = 5
_FAILED_SECONDS: Final = 240.0
_ONCE: Final = 1e12
_KEPT_SECONDS: Final = 18_000
"""The time of the cluster that a finished job of a pipeline is kept, so that its flow is shown whole for a while."""


@dataclass(frozen=True, slots=True)
class Submitted:
    """Jobs that a tenant submits together. `alone`: not while a job waits whose name begins so, unless ""."""

    tenant: Tenant
    jobs: Sequence[Mapping[str, Any]]
    alone: str = ""


@dataclass(frozen=True, slots=True)
class CardHealth:
    """A device, by its UUID, that fails or works again."""

    uuid: str
    healthy: bool


Event = Submitted | CardHealth


class Story:
    """The events of a fleet that is not the plain one of the examples: a pipeline of jobs that start after each other,
    a job that needs a whole node and waits long for it, a card that fails for four minutes, and inference that takes
    its rack back from training."""

    def __init__(self, fleet: str, chance: random.Random) -> None:
        self._chance = chance
        uuid = _uuid(_FAILING_NODE, _FAILING_INDEX)
        # Seconds until the first time, seconds from one time to the next, and the event.
        plot: tuple[tuple[float, float, Callable[[], Event]], ...] = (
            (15.0, 300.0, self._pipeline),
            (40.0, 900.0, self._whole_node),
            (75.0, 1200.0, lambda: CardHealth(uuid, healthy=False)),
            (5.0, _ONCE, self._first_training),
            (60.0, 240.0, self._reclaim),
            (75.0 + _FAILED_SECONDS, 1200.0, lambda: CardHealth(uuid, healthy=True)),
        )
        self._plot = plot if fleet in _FLEETS else ()
        self._next = [first for first, _, _ in self._plot]

    def due(self, seconds: float) -> list[Event]:
        """Return the events whose time has come, each at most once however late it is."""
        found: list[Event] = []
        for index, (_, every, make) in enumerate(self._plot):
            if self._next[index] <= seconds:
                found.append(make())
                self._next[index] += every * (1 + (seconds - self._next[index]) // every)
        return found

    def _pipeline(self) -> Submitted:
        """Return a flow of three jobs, each of which starts after the one before has succeeded."""
        run = f"{_PIPELINE}-{self._chance.getrandbits(16):04x}"
        whole = {"nvidia.com/gpumem": "32768", "nvidia.com/gpucores": "100"}
        steps: tuple[tuple[str, dict[str, str], dict[str, str], float], ...] = (
            ("prepare", {"cpu": "4", "memory": "16Gi"}, {}, 200.0),
            ("train", {"cpu": "8", "memory": "32Gi"}, {"nvidia.com/gpu": "2", **whole}, 900.0),
            ("evaluate", {"cpu": "2", "memory": "8Gi"}, {"nvidia.com/gpu": "1", **whole}, 200.0),
        )
        jobs: list[dict[str, Any]] = []
        for step, requests, limits, run_seconds in steps:
            job = manifest(RESEARCH, f"{run}-{step}", "normal-priority", requests, limits, run_seconds)
            job["metadata"]["labels"][BY_JOB_FLOW] = f"{RESEARCH.namespace}.{run}"
            job["spec"]["ttlSecondsAfterFinished"] = _KEPT_SECONDS
            if jobs:
                job["metadata"]["annotations"] = {START_AFTER: jobs[-1]["metadata"]["name"]}
            jobs.append(job)
        return Submitted(RESEARCH, jobs)

    def _first_training(self) -> Submitted:
        return Submitted(TRAINING, first_gangs(_FIRST_GANG_SECONDS, self._chance))

    def _reclaim(self) -> Submitted:
        """Return inference that needs the rack that its tenant lends to training."""
        return Submitted(SERVING, [serving_job(f"{RECLAIM}-{self._chance.getrandbits(16):04x}")], alone=RECLAIM)

    def _whole_node(self) -> Submitted:
        """Return a job on all cards of one node, which smaller jobs keep passing."""
        limits = {"nvidia.com/gpu": "8", "nvidia.com/gpumem": "32768", "nvidia.com/gpucores": "100"}
        name = f"{WHOLE_NODE}-{self._chance.getrandbits(16):04x}"
        job = manifest(RESEARCH, name, "normal-priority", {"cpu": "16", "memory": "64Gi"}, limits, 1200.0)
        return Submitted(RESEARCH, [job], alone=WHOLE_NODE)


def _uuid(node: str, index: int) -> str:
    (annotations,) = (
        found["metadata"]["annotations"] for found in example_fleet() if found["metadata"]["name"] == node
    )
    devices: list[dict[str, Any]] = json.loads(annotations[NVIDIA_REGISTER])
    (uuid,) = (device["id"] for device in devices if device.get("index", 0) == index)
    return str(uuid)
