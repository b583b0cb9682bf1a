"""A sign of life for whoever restarts a process that hangs: a file that the process touches while its loop turns.

The processes without a port (scheduler, push, beat, watcher) have no other. HEARTBEAT_PATH names the file.
"""

from pathlib import Path

from django.conf import settings


def touch_heartbeat() -> None:
    """Say that this process's loop has turned; does nothing where no file is named."""
    if settings.HEARTBEAT_PATH:
        Path(settings.HEARTBEAT_PATH).touch()
