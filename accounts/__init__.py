"""Clusters, namespaces, users' roles, and what a user may see."""
