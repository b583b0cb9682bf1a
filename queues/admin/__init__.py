"""The admin pages of queues. Configuration is written by the same services, and so by the same rules, as over REST."""

from queues.admin import clusters, configuration, workloads

__all__ = ["clusters", "configuration", "workloads"]
