"""The search over all nodes."""
