"""What the engine knows between cycles: pending queues, usage, the hierarchy of cohorts and queues."""
