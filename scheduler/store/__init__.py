"""Rows -> World, changes -> World, decisions -> rows."""
