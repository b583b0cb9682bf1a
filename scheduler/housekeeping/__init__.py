"""What runs beside the cycle: retention, partitions, telemetry."""
