"""Reads what a pod requests of devices from its resource limits and annotations."""
