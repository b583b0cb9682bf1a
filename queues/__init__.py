"""Quotas, queues and workloads."""
