"""Kueue's objects in a cluster, written as Kueue would write them, for the clients of its API."""
