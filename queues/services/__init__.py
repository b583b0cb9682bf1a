"""Every write to the rows of queues. Callers are the API, the admin, the watcher and the engine's own tools."""
