"""Kueue's objects in a cluster where kueueweb serves them: the common part of the watcher and the push."""
