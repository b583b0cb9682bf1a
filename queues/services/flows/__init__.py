"""Jobs that start after other jobs, and the flows that they form."""
