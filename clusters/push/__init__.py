"""From rows to what a cluster is told."""
