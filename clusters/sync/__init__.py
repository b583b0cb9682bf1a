"""Stores the cluster's state in rows."""
