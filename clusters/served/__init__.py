"""Kueue's objects in a cluster where they are ours to serve: what the watcher's side and the push's side share."""
