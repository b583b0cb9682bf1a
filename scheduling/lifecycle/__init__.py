"""The lifecycle of a workload outside the cycle: conditions, eviction, recovery, elastic jobs."""
