"""What happens to a workload outside the cycle: conditions, eviction, recovery, elastic jobs."""
