"""Tries changes of a World and takes them back: what a change comes to, and what would start a waiting workload."""
