"""Pod annotations that only schedulers and device plugins may write; a user who writes one impersonates them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from gpus.annotations.allocation import BIND_PHASE, BIND_TIME, MIG_ALLOCATIONS, NODE, TIME
from gpus.annotations.vendor_extras import EXTRAS
from scheduling.model.vendor import DeviceVendor

_FIXED: Final = frozenset({NODE, TIME, BIND_TIME, BIND_PHASE, MIG_ALLOCATIONS, *EXTRAS})
_OF_ANY_VENDOR: Final = re.compile(r"hami\.io/.*(-devices-to-allocate|-allocated)|huawei\.com/Ascend[0-9A-Za-z-]*")
"""Includes vendors that are not configured here, since their plugins may run all the same."""


def owned_annotations(keys: Iterable[str], vendors: Iterable[DeviceVendor]) -> list[str]:
    """Return the keys that only a scheduler or device plugin may write, in order."""
    theirs = {key for each in vendors for key in (each.annotations.to_allocate, each.annotations.allocated) if key}
    return [key for key in keys if key in _FIXED or key in theirs or _OF_ANY_VENDOR.fullmatch(key)]
