"""What is known between cycles: pending queues, usage, hierarchy."""
