"""The scheduling library: pure functions and objects that take a `World` and return decisions with their reasons.

It uses the standard library, and numpy to scan devices. It has no Django, no I/O, no clock and no randomness: the
caller passes the time as an argument and puts all other input into the `World`. The enums of
`scheduling.model.vocabulary` are the vocabulary of the whole project.
"""
