"""The admin pages of queues. Configuration is written by the same services, and so by the same rules, as over REST."""

from queues.admin import configuration, workloads

__all__ = ["configuration", "workloads"]
