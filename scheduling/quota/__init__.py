"""Quota arithmetic from a ClusterQueue's cell to the root of its cohort tree, and dominant resource shares."""
