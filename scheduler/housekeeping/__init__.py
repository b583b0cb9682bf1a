"""Periodic work besides the cycles: retention, partitions, telemetry."""
