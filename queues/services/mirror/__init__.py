"""Rows of a cluster that another scheduler runs: they mirror its objects."""
