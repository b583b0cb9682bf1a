"""Translates objects of other schedulers into ours, each with a report of the fields that change or are lost."""
