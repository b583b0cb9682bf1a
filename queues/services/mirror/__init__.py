"""Rows of a cluster that another scheduler runs: they repeat what its objects say."""
