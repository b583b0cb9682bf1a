"""Nodes and devices, and which workload holds which slice of a device."""
