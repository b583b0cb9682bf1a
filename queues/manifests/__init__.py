"""Kueue YAML <-> rows; every error located."""

from queues.manifests.job_workloads import workload_specs

__all__ = ["workload_specs"]
