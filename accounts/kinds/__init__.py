"""Manifests of what belongs to a whole cluster: its namespaces, and Kueue's Configuration."""
