"""The garbage collector of a test process, whose modules and thousands of tests stay until it ends."""

from __future__ import annotations

import gc

from foundation.garbage_collection import raise_thresholds


def collect_nothing_yet() -> None:
    """Collect nothing while modules and tests are loaded: almost all of their objects stay."""
    gc.disable()


def collect_seldom() -> None:
    """Collect as the product's processes do, and exclude the loaded modules and tests."""
    gc.freeze()
    raise_thresholds()
    gc.enable()
