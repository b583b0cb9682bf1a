"""Read-only advice: why a workload waits, which moves would help, how fragmented devices are."""
