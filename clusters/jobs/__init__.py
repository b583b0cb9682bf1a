"""The kinds of jobs that run in a cluster."""
