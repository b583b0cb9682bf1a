"""Read-only advice: why, moves, fragmentation."""
