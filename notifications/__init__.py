"""Notifies users of the events that their rules name: in the page, by webhook and by mail."""
