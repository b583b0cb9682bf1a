"""The demo: tenants who share a simulated cluster of GPUs, and jobs that keep arriving."""
