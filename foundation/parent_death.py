"""Child processes that the kernel ends together with their parent."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from typing import Final

_PR_SET_PDEATHSIG: Final = 1


def die_with_parent(parent: int, wish: signal.Signals) -> None:
    """Ask the kernel to send the signal `wish` to this process, a child of `parent`, as soon as the parent has ended.
    Only Linux offers this."""
    ask = to_die_with(parent, wish)
    if ask is not None:
        ask()


def to_die_with(parent: int, wish: signal.Signals) -> Callable[[], None] | None:
    """Return the request of `die_with_parent`, to be made after a fork; None if the kernel does not support it."""
    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(None, use_errno=True)  # loaded before a fork: little is safe after it

    def ask() -> None:
        library.prctl(_PR_SET_PDEATHSIG, int(wish), 0, 0, 0)
        if os.getppid() != parent:  # the parent has ended before this request took effect
            os._exit(1)

    return ask
