# noqa: N999 - Django names a command after its file
"""`manage.py placement-benchmark NODES PODS`: see `scheduler.management.placement_benchmark`."""

from scheduler.management.placement_benchmark import Command

__all__ = ["Command"]
