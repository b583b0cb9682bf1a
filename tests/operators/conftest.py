"""The control plane and the system of `tests/kubernetes`, with operators in the place of stand-ins."""

from tests.kubernetes.conftest import device_plugin, plane, system, webhook

__all__ = ["device_plugin", "plane", "system", "webhook"]
