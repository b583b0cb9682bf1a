"""queues over REST."""
