"""Notifications over REST."""
