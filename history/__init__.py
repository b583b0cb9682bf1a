"""The past: time series of queues, workloads and devices, and a record of each use for reports and charges."""
