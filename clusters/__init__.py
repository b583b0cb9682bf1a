"""The seam to Kubernetes: the client, the watcher, the pusher and a simulated cluster."""
