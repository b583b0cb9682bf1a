"""Kueue YAML <-> rows; every error located."""
