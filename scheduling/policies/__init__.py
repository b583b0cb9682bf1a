"""Policies of other schedulers that a queue or a cohort may ask for instead of Kueue's. All are off by default."""
