"""Which locks a pod's devices need. How they are taken is in `test_binder.py` and `test_binder_vendors.py`."""

from __future__ import annotations

import pytest

from clusters.push.node_locks import locks_of
from gpus.vendors import VENDORS
from scheduling.model.device import DeviceSlice
from scheduling.model.placement import PodPlacement

HAMI, CAMBRICON = "hami.io/mutex.lock", "cambricon.com/dsmlu.lock"


def locks(*containers: str, init: int = 0) -> list[str]:
    """The annotations that a pod needs whose containers each hold slices of these vendors, separated by spaces."""
    held = tuple(
        tuple(DeviceSlice(f"{word}-0", "n1", 1, 1, vendor=word) for word in container.split())
        for container in containers
    )
    placement = PodPlacement("main", 0, "n1", held, init_container_count=init)
    return [rule.annotation for rule in locks_of(placement, VENDORS)]


@pytest.mark.parametrize(
    "word", ["NVIDIA", "AMD", "Ascend910B3", "DCU", "MR-V100", "Metax-SGPU", "XPU", "Vastai", "Biren"]
)
def test_plugins_of_hami_and_after_its_model(word: str) -> None:
    assert locks(word) == [HAMI]


@pytest.mark.parametrize("word", ["Mthreads", "Metax-GPU", "GCU", "Enflame", "kunlun", "AWSNeuron"])
def test_plugins_that_need_none(word: str) -> None:
    assert locks(word) == []


def test_each_lock_once_in_one_order() -> None:
    assert locks("NVIDIA MLU", "DCU") == [CAMBRICON, HAMI]
    assert locks("MLU", "MLU") == [CAMBRICON]


def test_devices_of_init_containers_alone_need_none() -> None:
    assert locks("NVIDIA", "", init=1) == []
    assert locks("NVIDIA", "NVIDIA", init=1) == [HAMI]


def test_cambricon_s_expires_after_two_minutes_and_names_nobody() -> None:
    (rule,) = (vendor.lock for vendor in VENDORS if vendor.common_word == "MLU")
    assert rule is not None
    assert (rule.timeout_seconds, rule.names_holder) == (120, False)
