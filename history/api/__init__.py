"""History over REST."""
