"""A simulated cluster: a small API server with nodes, jobs and pods that run in scaled time.

It is a separate process with its own state, speaks Kubernetes' API over HTTP and imports neither Django nor our
tables, so that the code that drives it drives a real cluster unchanged.
"""
