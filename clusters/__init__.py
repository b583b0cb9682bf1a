"""The interface to Kubernetes: the client, the watcher, the pusher, the webhook and a simulated cluster."""
