"""Converts manifests of nodes and of HAMi's device configuration to and from rows."""

from gpus.manifests.device_configuration import (
    DevicePluginConfigSpec,
    configured_policies,
    read_config_map,
    write_config_map,
)
from gpus.manifests.nodes import NodeSpec, read_node, write_node
from gpus.manifests.vendor_settings import configured_vendors

__all__ = [
    "DevicePluginConfigSpec",
    "NodeSpec",
    "configured_policies",
    "configured_vendors",
    "read_config_map",
    "read_node",
    "write_config_map",
    "write_node",
]
