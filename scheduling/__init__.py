"""The pure scheduling core: a `World` goes in, decisions with reasons come out.

Standard library only (numpy where devices are scanned). No Django, no I/O, no clock, no randomness: the time is an
argument, everything else is given to the `World`. The enums of `scheduling.model.decisions` are the vocabulary of the
whole project.
"""
