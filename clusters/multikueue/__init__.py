"""Kueue's MultiKueue: workloads of a manager run in the first of its workers that admits them.

`objects` and `decisions` are pure; `workers` talks to the workers, each in a thread of its own; `controller` joins them
with our rows.
"""
