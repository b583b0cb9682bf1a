"""What fits on one node, and why not."""
