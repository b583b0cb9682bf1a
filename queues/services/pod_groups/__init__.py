"""Pod groups: several plain pods that form one workload."""
