"""Periodic work beside the cycle: retention, partitions, telemetry."""
