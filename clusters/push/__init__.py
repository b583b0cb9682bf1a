"""Pushes rows to a cluster."""
