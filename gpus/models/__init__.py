"""The rows of gpus, one noun per file."""

from gpus.models.device import AllocationSource, Device, DeviceAllocation
from gpus.models.node import Node
from gpus.models.sample import ContainerSample, DeviceSample

__all__ = [
    "AllocationSource",
    "ContainerSample",
    "Device",
    "DeviceAllocation",
    "DeviceSample",
    "Node",
]
