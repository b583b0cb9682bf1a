"""The simulated cluster's API server."""
