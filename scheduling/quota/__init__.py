"""Quota from a queue's cell to the root of its cohort tree, and dominant shares."""
