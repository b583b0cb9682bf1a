"""Which annotations of a pod only a scheduler or a device plugin writes: a user who writes one speaks in their name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from gpus.annotations.allocation import BIND_PHASE, BIND_TIME, MIG_ALLOCATIONS, NODE, TIME
from gpus.annotations.vendor_extras import EXTRAS
from scheduling.model.vendor import DeviceVendor

_FIXED: Final = frozenset({NODE, TIME, BIND_TIME, BIND_PHASE, MIG_ALLOCATIONS, *EXTRAS})
_OF_ANY_VENDOR: Final = re.compile(r"hami\.io/.*(-devices-to-allocate|-allocated)|huawei\.com/Ascend[0-9A-Za-z-]*")
"""Also of vendors that are not configured here: a plugin of theirs may be at work all the same."""


def owned_annotations(keys: Iterable[str], vendors: Iterable[DeviceVendor]) -> list[str]:
    """Those of the keys that are a scheduler's or a device plugin's, in order."""
    theirs = {key for each in vendors for key in (each.annotations.to_allocate, each.annotations.allocated) if key}
    return [key for key in keys if key in _FIXED or key in theirs or _OF_ANY_VENDOR.fullmatch(key)]
