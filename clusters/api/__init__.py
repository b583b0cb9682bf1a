"""REST: manifests in and out."""
