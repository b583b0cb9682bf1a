"""What was: time series of queues, workloads and devices, and a record of each use, to look back and to charge for."""
