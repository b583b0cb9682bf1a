"""Policies of other schedulers that a queue or a cohort can select instead of Kueue's. All are off by default."""
