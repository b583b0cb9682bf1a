"""Traces of jobs, and their runs through two configurations side by side."""
