"""The studio over REST."""
