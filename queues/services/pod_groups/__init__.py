"""Pods of groups: many pods that are one workload."""
