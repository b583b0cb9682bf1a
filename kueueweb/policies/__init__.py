"""Scenarios of other schedulers in the terms of our rules, for `manage.py policies`."""
