"""The one process that decides: its lease, its engine, its timers."""
