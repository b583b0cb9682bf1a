"""The demo's devices of other kinds than whole and shared NVIDIA GPUs: the requests of jobs for each."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

from kueueweb.demo.jobs import STUDENT, manifest
from simulation.fleet import MIXED, SEVERAL

_MLU, _MUSA, _MX = "cambricon.com/mlu.smlu", "mthreads.com/sgpu", "metax-tech.com"

SHAPES: Sequence[tuple[str, Mapping[str, str]]] = (
    ("mig", {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "4800"}),
    ("mig", {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "9000"}),
    ("mig", {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "19000"}),
    ("mi300x", {"amd.com/gpu": "1", "amd.com/gpumem": "49152", "amd.com/gpucores": "25"}),
    ("mi300x", {"amd.com/gpu": "2", "amd.com/gpumem": "98304", "amd.com/gpucores": "50"}),
    ("ascend910b3", {"huawei.com/Ascend910B3": "1", "huawei.com/Ascend910B3-memory": "16384"}),
    ("ascend910b3", {"huawei.com/Ascend910B3": "2"}),
    ("ascend910c", {"huawei.com/Ascend910C": "2"}),
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
"""Prefixes of job names, each with the limits of the jobs."""


SHAPES_OF: Mapping[str, Sequence[tuple[str, Mapping[str, str]]]] = {
    SEVERAL: [shape for shape in SHAPES if shape[0] in ("mig", "ascend910b3")],
    MIXED: SHAPES,
}
"""Shapes by fleet; other fleets have no such devices."""


def mixed_job(fleet: str, run_seconds: float, chance: random.Random) -> dict[str, Any]:
    """Return a batch/v1 Job for one vendor's devices, or the instances of one in MIG mode."""
    word, limits = chance.choice(SHAPES_OF[fleet])
    name = f"{word}-{chance.getrandbits(32):08x}"
    return manifest(STUDENT, name, "normal-priority", {"cpu": "1", "memory": "4Gi"}, limits, run_seconds)
