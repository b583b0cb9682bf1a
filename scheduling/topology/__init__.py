"""Topology-aware scheduling in one flavor's tree of domains."""
