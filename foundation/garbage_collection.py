"""Garbage collection in processes that live long, and while much is loaded."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


def calm_the_collector() -> None:
    """Exclude all existing objects from garbage collection, and collect seldom: a process calls it once it has loaded.

    Without this, collection took an eighth of the watcher's processor time, and half of a cycle's in a loaded World.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


@contextmanager
def without_collection() -> Iterator[None]:
    """Collect no garbage meanwhile: for work that makes many objects and keeps them.

    Collections took a third of the processor time in which a large World is loaded. Of two at once in a process, the
    first one ends it for both.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
