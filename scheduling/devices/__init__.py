"""Devices: what a pod asks for, what fits on a node, which node and devices are best."""
