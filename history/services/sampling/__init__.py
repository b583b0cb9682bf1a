"""Sampling every fifteen seconds: from the leader's numbers, from rows and from the log of decisions."""
