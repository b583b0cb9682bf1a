"""The hardware, and which workload holds which slice of it."""
