"""The single leading process: its engine, its pace, its timers."""
