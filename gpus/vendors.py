"""The table of vendors: resource names, units, defaults, rules and annotations. A new vendor is a row."""

from __future__ import annotations

from scheduler.core.device_vendor import NVIDIA, DeviceVendor

VENDORS: tuple[DeviceVendor, ...] = (NVIDIA,)
"""All vendors that are recognised with their default names."""
