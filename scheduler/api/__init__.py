"""The scheduler over REST: its decisions, its numbers, and manifests in and out."""
