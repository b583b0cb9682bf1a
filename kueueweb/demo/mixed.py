"""The demo's mixed fleet: what jobs ask of each vendor, and the queue that they go to."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

from clusters.simulated.environment import RUN_SECONDS

NAMESPACE, QUEUE = "ai-research", "accelerators-queue"
_KEPT_SECONDS = 600
_MLU, _MUSA, _MX = "cambricon.com/mlu.smlu", "mthreads.com/sgpu", "metax-tech.com"

SHAPES: Sequence[tuple[str, Mapping[str, str]]] = (
    ("mig", {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "4800"}),
    ("mig", {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "9000"}),
    ("mig", {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "19000"}),
    ("mi300x", {"amd.com/gpu": "1", "amd.com/gpumem": "49152", "amd.com/gpucores": "25"}),
    ("mi300x", {"amd.com/gpu": "2", "amd.com/gpumem": "98304", "amd.com/gpucores": "50"}),
    ("ascend", {"huawei.com/Ascend910B3": "1", "huawei.com/Ascend910B3-memory": "16384"}),
    ("ascend", {"huawei.com/Ascend910B3": "2"}),
    ("ascend", {"huawei.com/Ascend910C": "2"}),
    ("dcu", {"hygon.com/dcunum": "1", "hygon.com/dcumem": "16380", "hygon.com/dcucores": "25"}),
    (
        "iluvatar",
        {"iluvatar.ai/BI-V150-vgpu": "1", "iluvatar.ai/BI-V150.vMem": "32", "iluvatar.ai/BI-V150.vCore": "25"},
    ),
    ("mlu", {"cambricon.com/vmlu": "1", f"{_MLU}.vmemory": "48", f"{_MLU}.vcore": "25"}),
    ("musa", {"mthreads.com/vgpu": "1", f"{_MUSA}-memory": "32", f"{_MUSA}-core": "4"}),
    ("sgpu", {f"{_MX}/sgpu": "1", f"{_MX}/vmemory": "16", f"{_MX}/vcore": "25"}),
    ("gcu", {"enflame.com/drs-gcu": "1"}),
    ("gcu", {"enflame.com/drs-gcu": "3"}),
    ("xpu", {"kunlunxin.com/xpu": "2"}),
    ("neuron", {"aws.amazon.com/neuroncore": "1"}),
    ("neuron", {"aws.amazon.com/neuron": "4"}),
    ("dies", {"vastaitech.com/va": "2"}),
    ("biren", {"birentech.com/gpu": "1"}),
)
"""What a job's name begins with, and its limits."""


def mixed_job(run_seconds: float, chance: random.Random) -> dict[str, Any]:
    """A batch/v1 Job for one vendor's devices."""
    word, limits = chance.choice(SHAPES)
    requests = {"cpu": "1", "memory": "4Gi"}
    container = {
        "name": "main",
        "image": "example.org/demo:1",
        "resources": {"requests": requests, "limits": dict(limits)},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": f"{word}-{chance.getrandbits(32):08x}",
            "namespace": NAMESPACE,
            "labels": {"kueue.x-k8s.io/queue-name": QUEUE, "kueue.x-k8s.io/priority-class": "normal-priority"},
        },
        "spec": {
            "suspend": True,
            "parallelism": 1,
            "completions": 1,
            "ttlSecondsAfterFinished": _KEPT_SECONDS,
            "template": {
                "metadata": {"annotations": {RUN_SECONDS: f"{run_seconds:.0f}"}},
                "spec": {"restartPolicy": "Never", "containers": [container]},
            },
        },
    }
