"""Reads a pod's device requests from its resource limits and annotations."""
