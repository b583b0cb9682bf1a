"""The scheduler over REST: what it decided, the numbers it shows, and manifests in and out."""
