"""Garbage collection in processes that live long, and while much is loaded."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


def raise_thresholds() -> None:
    """Collect garbage seldom: a process calls it before it loads modules, almost all of whose objects stay.

    With Python's thresholds, collections took an eighth of the processor time of a start.
    """
    gc.set_threshold(50_000, 20, 50)


def calm_the_collector() -> None:
    """Exclude all existing objects from garbage collection, and collect seldom.

    A process calls this once it has loaded. Without it, collection took an eighth of the watcher's processor time, and
    half of the time of a cycle in a loaded World.
    """
    gc.collect()
    gc.freeze()
    raise_thresholds()


@contextmanager
def without_collection() -> Iterator[None]:
    """Disable garbage collection within the block, for work that creates many objects and keeps them.

    Collections took a third of the processor time of loading a large World. If two blocks overlap in a process, the end
    of the first one enables collection for both.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
