"""The engine's state between cycles: pending queues, usage, the hierarchy of cohorts and queues."""
