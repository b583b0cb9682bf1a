"""Checks of an installation with remedies: `manage.py preflight` before it starts, `manage.py doctor` while it runs."""
