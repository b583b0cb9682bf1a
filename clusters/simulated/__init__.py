"""A simulated cluster: a small API server with nodes, jobs and pods that live in scaled time.

It is a process of its own with its own state, speaks Kubernetes' API over HTTP and imports neither Django nor our
tables, so that what drives it drives a real cluster unchanged.
"""
