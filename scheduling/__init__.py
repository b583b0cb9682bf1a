"""The pure scheduling library: a `World` goes in, decisions with reasons come out.

It uses the standard library, and numpy where devices are scanned. It has no Django, no I/O, no clock and no
randomness: the time is an argument, and the caller gives everything else to the `World`. The enums of
`scheduling.model.vocabulary` are the vocabulary of the whole project.
"""
