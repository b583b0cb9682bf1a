"""The search for places on all nodes."""
