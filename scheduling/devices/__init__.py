"""Devices: what a pod requests, what fits on a node, and which node and devices are best."""
