"""Stores what a cluster reports in rows."""
