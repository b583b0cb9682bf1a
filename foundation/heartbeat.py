"""The heartbeat of a background process.

While its loop turns, the process touches the file that HEARTBEAT_PATH names every few seconds, so that a supervisor
can restart one that hangs, and writes the time to Redis, where the overview, `/readyz` and the metrics read it. A
scheduler whose runs fail does not touch the file: its age says when a run last ended well, or when a standby looked.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from redis import RedisError

from foundation.redis_client import redis_client

_log = logging.getLogger(__name__)

HEARTBEAT_SECONDS: Final = 5.0
SILENT_SECONDS: Final = 20
"""A role none of whose processes has shown life for so long is silent."""
_KNOWN_SECONDS: Final = 24 * 3600.0
"""A webhook or a visibility server that has been silent for longer was taken away."""
_SEEN: Final = "kueueweb:heartbeats"


class Role(StrEnum):
    """The role of a process in an installation."""

    SCHEDULER = "scheduler"
    PUSH = "push"
    BEAT = "beat"
    WATCHER = "watcher"
    WEBHOOK = "webhook"
    VISIBILITY = "visibility"
    STUDIO = "studio"
    API_SERVER = "api-server"
    """The API server of a cluster, which is no process of ours: the watcher says when it answers."""


_ROLES: Final = frozenset(role.value for role in Role)
_IN_EVERY_CLUSTER: Final = (Role.WATCHER,)
_IN_EVERY_INSTALLATION: Final = (Role.PUSH, Role.BEAT, Role.STUDIO)


@dataclass(frozen=True, slots=True)
class RoleHealth:
    """Whether some process of a role is alive. `cluster` is empty where one process serves all clusters."""

    role: Role
    cluster: str
    alive: bool
    last_seen_at: datetime | None


_progress: Final = threading.Event()
_progress.set()


def note_progress(is_well: bool) -> None:
    """Note whether the work of this process succeeds: while it does not, the file is not touched."""
    (_progress.set if is_well else _progress.clear)()


def touch_file() -> None:
    """Touch the file that HEARTBEAT_PATH names, unless the work of this process fails."""
    if settings.HEARTBEAT_PATH and _progress.is_set():
        Path(settings.HEARTBEAT_PATH).touch()


def touch_heartbeat(role: Role, cluster: str = "") -> None:
    """Say that the loop of a process of this role has turned. Never fails because of Redis."""
    touch_file()
    note_life(role, cluster)


def note_life(role: Role, cluster: str = "") -> None:
    """Say that a role is alive, whatever the loop of this process does. Never fails because of Redis."""
    try:
        redis_client().hset(_SEEN, f"{role}/{cluster}", repr(time.time()))
    except RedisError as error:
        _log.warning("The heartbeat of %s could not be read: %s", role, error)


def role_health(clusters: Sequence[str], now: float) -> list[RoleHealth]:
    """Return the health of all roles that an installation or a cluster needs, or that were seen within a day.

    Where Redis does not answer, none is known to be alive.
    """
    wanted = [(role, "") for role in _IN_EVERY_INSTALLATION]
    wanted += [(role, cluster) for cluster in clusters for role in _IN_EVERY_CLUSTER]
    wanted += [(Role.SCHEDULER, cluster) for cluster in clusters if cluster in settings.OWN_SCHEDULERS]
    if not clusters or not set(clusters) <= set(settings.OWN_SCHEDULERS):
        wanted.append((Role.SCHEDULER, ""))
    seen = {
        place: at
        for place, at in _seen().items()
        if place in wanted or (place[1] in clusters and (now - at < _KNOWN_SECONDS or place[0] == Role.API_SERVER))
    }
    return [
        RoleHealth(
            role,
            cluster,
            alive=at is not None and now - at < SILENT_SECONDS,
            last_seen_at=None if at is None else datetime.fromtimestamp(at, UTC),
        )
        for role, cluster in sorted({*wanted, *seen})
        for at in [seen.get((role, cluster))]
    ]


def is_alive(role: Role, cluster: str = "") -> bool:
    """Return whether a process of the role was heard lately. Where Redis does not answer, none is known to be alive."""
    at = _seen().get((role, cluster))
    return at is not None and time.time() - at < SILENT_SECONDS


def _seen() -> dict[tuple[Role, str], float]:
    try:
        found: Any = redis_client().hgetall(_SEEN)
    except RedisError as error:
        _log.warning("The processes' heartbeats could not be read: %s", error)
        return {}
    places = {key.decode().partition("/")[::2]: float(at) for key, at in found.items()}
    return {(Role(role), cluster): at for (role, cluster), at in places.items() if role in _ROLES}
