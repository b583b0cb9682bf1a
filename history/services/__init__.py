"""Sampling, reading, reports and retention of history."""
