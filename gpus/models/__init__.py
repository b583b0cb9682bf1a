"""The rows of gpus, one noun per file."""

from gpus.models.device import AllocationSource, Device, DeviceAllocation
from gpus.models.node import Node

__all__ = ["AllocationSource", "Device", "DeviceAllocation", "Node"]
