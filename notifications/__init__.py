"""Tells users what they asked to be told: in the page, by webhook and by mail."""
