"""The demo's jobs: sizes and run times as in openb, dressed as Jobs of its tenants. Pure, given a random generator."""

import json
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any, Self

from simulation.environment import FAIL, RUN_SECONDS

_DEVICE_MEMORY_MIB = {"gpu-v100-32gb": 32_768, "gpu-a100-80gb": 81_920}
_MEMORY_STEP_MIB = 256
_MAX_RUN_SECONDS = 3_600.0  # of the cluster's time: openb's longest run for months, and a demo should move
_KEPT_SECONDS = 600  # of the cluster's time, that a finished Job stays in the cluster
_WHOLE_DEVICE = 1_000
_HOST_SHARE = 0.5
"""The share of the cpu and memory of openb's pods that the demo requests: openb's nodes have more of both per GPU, and
in the demo the GPUs must be exhausted first.
"""
_FAILING_SHARE = "0.01"
_LOW_PRIORITY = "low-priority"
_SWING_SECONDS = 7_200.0
_MAX_LOW_PRIORITY_SECONDS = 300.0  # a longer job would be preempted again and again, and never end


@dataclass(frozen=True, slots=True)
class Shape:
    """A pod of openb. `gpu_milli` is its part of each of its devices: 1000 is all of one."""

    num_gpu: int
    gpu_milli: int
    cpu_milli: int
    memory_mib: int


@dataclass(frozen=True, slots=True)
class Tenant:
    """An account that submits: its LocalQueues, and the shares of its jobs by priority. Few jobs may preempt or be
    preempted, so that preemptions stay rare.
    """

    username: str
    namespace: str
    queue: str
    priorities: Sequence[tuple[str, float]]
    words: Sequence[str]


RESEARCH = Tenant(
    "researcher",
    "ai-research",
    "research-queue",
    (("normal-priority", 0.88), (_LOW_PRIORITY, 0.12)),
    ("llm-pretraining", "bert-finetuning", "diffusion-sweep", "notebook", "ablation"),
)
PRODUCTION = Tenant(
    "operator",
    "ai-production",
    "production-queue",
    (("high-priority", 0.04), ("normal-priority", 0.96)),
    ("model-inference", "embedding-refresh", "ranking-training", "batch-scoring", "speech-to-text"),
)


STUDENT = Tenant(
    "student",
    "ai-research",
    "accelerators-queue",
    (("normal-priority", 1.0),),
    (),  # the job names depend on the vendor of their devices
)
TRAINING = Tenant(
    "researcher",
    "ai-research",
    "training-queue",
    (("normal-priority", 1.0),),
    ("foundation-model", "mixture-of-experts", "long-context"),
)
SERVING = Tenant("operator", "ai-production", "serving-queue", (("high-priority", 1.0),), ("chat-serving",))
OVERFLOW = Tenant(
    "operator",
    "ai-production",
    "overflow-queue",
    (("normal-priority", 1.0),),
    ("video-transcoding", "document-ocr"),
)
TENANTS = (RESEARCH, PRODUCTION, STUDENT, TRAINING, SERVING, OVERFLOW)


class OpenbSizes:
    """Draws shapes and run times with openb's frequencies."""

    def __init__(self, shapes: Sequence[tuple[int, Shape]], percentiles: Sequence[float]) -> None:
        self._shapes = [shape for _, shape in shapes]
        self._weights = list(accumulate(count for count, _ in shapes))
        self._percentiles = percentiles

    @classmethod
    def shipped(cls) -> Self:
        """Load the table in this folder, which scripts/openb_distribution.py has counted."""
        table = json.loads((Path(__file__).parent / "openb_distribution.json").read_text(encoding="utf-8"))
        shapes = [(count, Shape(*shape)) for count, *shape in table["shapes"]]
        return cls(shapes, table["run_seconds_percentiles"])

    def shape(self, chance: random.Random) -> Shape:
        """Draw the requests of a pod: the devices of one of openb's pods, and a part of its cpu and memory."""
        shape = chance.choices(self._shapes, cum_weights=self._weights)[0]
        return replace(
            shape,
            cpu_milli=math.ceil(shape.cpu_milli * _HOST_SHARE),
            memory_mib=math.ceil(shape.memory_mib * _HOST_SHARE),
        )

    def run_seconds(self, chance: random.Random) -> float:
        """Draw the run time of a job, at most an hour."""
        return min(chance.choice(self._percentiles), _MAX_RUN_SECONDS)


def job(tenant: Tenant, shape: Shape, run_seconds: float, chance: random.Random) -> dict[str, Any]:
    """Return a batch/v1 Job for one shape. A tenth of those on one device run as two to four pods that start
    together."""
    priority = chance.choices([name for name, _ in tenant.priorities], [share for _, share in tenant.priorities])[0]
    pods = chance.choice((2, 3, 4)) if shape.num_gpu == 1 and chance.random() < 0.1 else 1
    if priority == _LOW_PRIORITY:
        run_seconds = min(run_seconds, _MAX_LOW_PRIORITY_SECONDS)
    requests = {"cpu": f"{shape.cpu_milli}m", "memory": f"{shape.memory_mib}Mi"}
    name = f"{chance.choice(tenant.words)}-{chance.getrandbits(32):08x}"
    return manifest(tenant, name, priority, requests, _device_limits(shape, chance), run_seconds, pods=pods)


def manifest(
    tenant: Tenant,
    name: str,
    priority: str,
    requests: Mapping[str, str],
    limits: Mapping[str, str],
    run_seconds: float,
    *,
    pods: int = 1,
) -> dict[str, Any]:
    """Return a Job of equal pods that start together. A pod that fails ends it."""
    container = {
        "name": "main",
        "image": "example.org/demo:1",
        "resources": {"requests": dict(requests), "limits": dict(limits)},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": tenant.namespace,
            "labels": {"kueue.x-k8s.io/queue-name": tenant.queue, "kueue.x-k8s.io/priority-class": priority},
        },
        "spec": {
            "suspend": True,
            "parallelism": pods,
            "completions": pods,
            "backoffLimit": 0,
            "ttlSecondsAfterFinished": _KEPT_SECONDS,
            "template": {
                "metadata": {"annotations": {RUN_SECONDS: f"{run_seconds:.0f}", FAIL: _FAILING_SHARE}},
                "spec": {"restartPolicy": "Never", "containers": [container]},
            },
        },
    }


def _device_limits(shape: Shape, chance: random.Random) -> dict[str, str]:
    """HAMi's resources. A part of a device is a part of a V100's memory, so that it fits both; whole devices choose
    one."""
    if not shape.num_gpu:
        return {}
    flavor = "gpu-v100-32gb"
    if shape.gpu_milli == _WHOLE_DEVICE and chance.random() < 1 / 3:  # a third of the devices are A100
        flavor = "gpu-a100-80gb"
    memory = _DEVICE_MEMORY_MIB[flavor] * shape.gpu_milli / _WHOLE_DEVICE
    return {
        "nvidia.com/gpu": str(shape.num_gpu),
        "nvidia.com/gpumem": str(math.ceil(memory / _MEMORY_STEP_MIB) * _MEMORY_STEP_MIB),
        "nvidia.com/gpucores": str(shape.gpu_milli // 10),
    }


def busier_tenant_share(seconds: float) -> float:
    """Return the share of the tenant Research in the arrivals at a moment of the cluster's time. It swings, so that
    each tenant lends, borrows and reclaims."""
    return 0.5 + 0.15 * math.sin(2 * math.pi * seconds / _SWING_SECONDS)
