"""gpus over REST."""
