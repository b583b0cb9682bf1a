"""Tries changes of a World and undoes them: the effects of a change, and the changes that would start a waiting
workload.
"""
