"""The admin pages of queues. Configuration is written by the same services, and so by the same rules, as over REST."""

from queues.admin import configuration_pages, workload_pages

__all__ = ["configuration_pages", "workload_pages"]
