"""A virtual cluster with its clock, and the scenarios it runs."""
