"""All writes to the rows of queues. Callers are the API, the admin, the watcher and the engine."""
