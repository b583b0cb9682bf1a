"""Our decisions beside those of another scheduler that runs the cluster."""
