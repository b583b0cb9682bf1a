"""Who may use how much, and who waits: quotas, queues and workloads."""
