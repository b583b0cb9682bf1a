"""A virtual cluster with its own clock, and the scenarios that it runs."""
