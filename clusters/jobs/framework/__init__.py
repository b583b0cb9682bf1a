"""The framework of all kinds of jobs: defaulting, validation, pod sets, start and stop, the controller (pure).

Objects are plain JSON as the API server has them; other objects are read from an `ObjectStore`. The rules are those of
Kueue's job framework with the feature gates of 0.20 at their defaults.
"""
