"""The heartbeat of a background process.

While its loop turns, the process touches the file that HEARTBEAT_PATH names every few seconds, so that a supervisor can
restart one that hangs, and writes the time to Redis, where the overview, `/readyz` and the metrics read it. A scheduler
whose runs fail does not touch the file: its age is the time since the last successful run, or since a standby last
checked. In a process of several roles, no loop touches the file while another one hangs.

Times are those of Redis' clock, which all processes share, so a wrong clock makes no process look dead or alive. Each
process also writes the difference of its own clock, so that a replica with a correct clock does not hide a wrong one.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Iterable, Sequence
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
"""A role is silent if none of its processes has sent a heartbeat for this many seconds."""
WRONG_CLOCK_SECONDS: Final = 5.0
"""A clock that differs from that of Redis by more is wrong."""
_SLOW_SECONDS: Final = 1.0
"""After a round trip of this length, the clock's difference is too uncertain."""
FAILING_SECONDS: Final = 150.0
"""A failure that was not reported for longer has ended. A push reports it after at most two requests without an
answer."""
_KNOWN_SECONDS: Final = 24 * 3600.0
"""A webhook or a visibility server that has been silent for longer was taken away."""
_SEEN: Final = "kueueweb:heartbeats"
_CLOCKS: Final = "kueueweb:process-clocks"
_FAILING: Final = "kueueweb:failing"
"""By role and cluster, when the failure began, and when it was last reported."""


class Role(StrEnum):
    """The role of a process in an installation."""

    SCHEDULER = "scheduler"
    PUSH = "push"
    BEAT = "beat"
    WATCHER = "watcher"
    WEBHOOK = "webhook"
    VISIBILITY = "visibility"
    STUDIO = "studio"
    WEB = "web"
    """The process that answers, which is in the list only while its clock is wrong."""
    API_SERVER = "api-server"
    """The API server of a cluster, which is not a process of ours: the watcher says when it answers."""
    CLUSTER_PUSH = "cluster-push"
    """The push to one cluster, which is in the list only while no sweep ends: the cluster does not answer, or refuses
    what every sweep asks. A refused write of one workload is not shown here."""


_ROLES: Final = frozenset(role.value for role in Role)
_NEVER_TAKEN_AWAY: Final = (Role.API_SERVER, Role.CLUSTER_PUSH)
"""A fault of these does not end because it has lasted for a day."""
_IN_EVERY_CLUSTER: Final = (Role.WATCHER,)
_IN_EVERY_INSTALLATION: Final = (Role.PUSH, Role.BEAT, Role.STUDIO)


@dataclass(frozen=True, slots=True)
class RoleHealth:
    """Whether some process of a role is alive. `cluster` is empty where one process serves all clusters.

    * clock_ahead_seconds: how far the clock of one of its living processes is ahead of that of Redis, negative if it is
      behind: of the process whose clock differs most. None if it is not known.
    """

    role: Role
    cluster: str
    alive: bool
    last_seen_at: datetime | None
    clock_ahead_seconds: float | None = None

    @property
    def clock_fault(self) -> str:
        """Report by how much its clock is wrong; empty if it is right or unknown."""
        ahead = self.clock_ahead_seconds or 0.0
        if abs(ahead) <= WRONG_CLOCK_SECONDS:
            return ""
        return f"its clock is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} that of Redis"


_progress: Final = threading.Event()
_progress.set()


def note_progress(is_well: bool) -> None:
    """Record whether the work of this process succeeds. While it fails, the file is not touched."""
    (_progress.set if is_well else _progress.clear)()


_loops: Final[dict[tuple[Role, str], float]] = {}
"""When each loop of a process of several roles turned last, in seconds that only go forward."""


def join_loops(places: Iterable[tuple[Role, str]], since: float | None = None) -> None:
    """Combine the heartbeats of these loops of this process, each by its role and cluster. If one thread hangs, the
    file is no longer touched. `since` is the monotonic time at which the loops started; now by default."""
    _loops.clear()
    _loops.update(dict.fromkeys(places, time.monotonic() if since is None else since))


def touch_file() -> None:
    """Touch the file that HEARTBEAT_PATH names, unless the work of this process fails or one of its loops hangs."""
    if settings.HEARTBEAT_PATH and _progress.is_set() and not _hanging():
        Path(settings.HEARTBEAT_PATH).touch()


def _hanging() -> list[tuple[Role, str]]:
    now = time.monotonic()
    return [place for place, turned_at in _loops.items() if now - turned_at >= SILENT_SECONDS]


def touch_heartbeat(role: Role, cluster: str = "") -> None:
    """Report that the loop of a process with this role has run once. Never fails because of Redis."""
    if (role, cluster) in _loops:
        _loops[role, cluster] = time.monotonic()
    touch_file()
    note_life(role, cluster)


def note_life(role: Role, cluster: str = "") -> None:
    """Report that a role is alive, whatever the loop of this process does. Never fails because of Redis."""
    place = f"{role}/{cluster}"
    try:
        clock = _ask_clock()
        with redis_client().pipeline(transaction=False) as changes:
            changes.hset(_SEEN, place, repr(clock.shared))
            if clock.is_certain and role != Role.API_SERVER:
                process = f"{place}/{socket.gethostname()}:{os.getpid()}"
                changes.hset(_CLOCKS, process, f"{clock.ahead_seconds!r} {clock.shared!r}")
            changes.execute()
    except RedisError as error:
        _log.warning("The heartbeat of %s could not be read: %s", role, error)


def note_failure(role: Role, cluster: str, seconds: float = 0.0) -> None:
    """Report that the work of a role for a cluster fails.

    Never fails because of Redis. `seconds` is how long it has already failed, such as the wait for a server that does
    not answer. The failure began with the first report. It is forgotten if no further report comes within
    FAILING_SECONDS, because the process or its cluster is gone.
    """
    place = f"{role}/{cluster}"
    try:
        now = _ask_clock().shared
        found: Any = redis_client().hgetall(_FAILING)
        since = _failures(found, now).get(place.encode(), now - seconds)
        redis_client().hset(_FAILING, place, f"{since!r} {now!r}")
    except RedisError as error:
        _log.warning("The failure of %s in cluster %s could not be noted: %s", role, cluster, error)


def note_recovery(role: Role, cluster: str) -> None:
    """Report that the work of a role for a cluster no longer fails. Never fails because of Redis."""
    try:
        redis_client().hdel(_FAILING, f"{role}/{cluster}")
    except RedisError as error:
        _log.warning("The recovery of %s in cluster %s could not be noted: %s", role, cluster, error)


def _failures(found: dict[bytes, bytes], shared: float) -> dict[bytes, float]:
    """Return by role and cluster since when it fails. `shared` is the time by Redis' clock."""
    noted = {place: [float(moment) for moment in value.split()] for place, value in found.items()}
    return {place: since for place, (since, last) in noted.items() if shared - last < FAILING_SECONDS}


@dataclass(frozen=True, slots=True)
class _Clock:
    """The time of Redis' clock, and how far that of this process is ahead of it, within half of the round trip."""

    shared: float
    ahead_seconds: float
    is_certain: bool
    """Whether the round trip was short enough to call a clock wrong by it."""


def _ask_clock() -> _Clock:
    began, now = time.monotonic(), time.time()
    return _clock(redis_client().time(), began, now)


def _clock(answer: Any, began: float, now: float) -> _Clock:
    """Compare clocks by an answer that just came. `began` (monotonic) and `now` are the times before the question."""
    took = time.monotonic() - began
    shared = answer[0] + answer[1] / 1e6
    return _Clock(shared, now + took / 2 - shared, took < _SLOW_SECONDS)


def role_health(clusters: Sequence[str], now: float) -> list[RoleHealth]:
    """Return the health of all roles that an installation or a cluster needs, or that were seen within a day. `now` is
    the time by the clock of this process. If Redis does not answer, all roles count as silent."""
    wanted = [(role, "") for role in _IN_EVERY_INSTALLATION]
    wanted += [(role, cluster) for cluster in clusters for role in _IN_EVERY_CLUSTER]
    wanted += [(Role.SCHEDULER, cluster) for cluster in clusters if cluster in settings.OWN_SCHEDULERS]
    if not clusters or not set(clusters) <= set(settings.OWN_SCHEDULERS):
        wanted.append((Role.SCHEDULER, ""))
    signs = _signs()
    now -= signs.clock.ahead_seconds
    seen = {
        place: at
        for place, at in signs.seen.items()
        if place in wanted or (place[1] in clusters and (now - at < _KNOWN_SECONDS or place[0] in _NEVER_TAKEN_AWAY))
    }
    ahead = signs.clock.ahead_seconds if signs.clock.is_certain else None
    mine = RoleHealth(Role.WEB, "", True, datetime.fromtimestamp(now, UTC), ahead)
    others = [
        RoleHealth(
            role,
            cluster,
            alive=alive,
            last_seen_at=None if at is None else datetime.fromtimestamp(at, UTC),
            clock_ahead_seconds=signs.clocks.get((role, cluster)) if alive else None,
        )
        for role, cluster in sorted({*wanted, *seen})
        for at in [seen.get((role, cluster))]
        for alive in [at is not None and now - at < SILENT_SECONDS]
    ]
    return [*others, mine] if mine.clock_fault else others


def is_alive(role: Role, cluster: str = "") -> bool:
    """Return whether a process of the role sent a heartbeat recently. If Redis does not answer, all roles count as
    silent."""
    signs = _signs()
    at = signs.seen.get((role, cluster))
    return at is not None and time.time() - signs.clock.ahead_seconds - at < SILENT_SECONDS


Place = tuple[Role, str]


@dataclass(frozen=True, slots=True)
class _Signs:
    """The signs of life in Redis, by role and cluster."""

    seen: dict[Place, float]
    """When each was last seen, by Redis' clock."""
    clocks: dict[Place, float]
    """How far the clock of a living process of each is ahead of Redis': of the process whose clock differs most."""
    clock: _Clock
    """The clock of this process."""


def _signs() -> _Signs:
    try:
        with redis_client().pipeline(transaction=False) as questions:
            questions.hgetall(_SEEN)
            questions.hgetall(_CLOCKS)
            questions.hgetall(_FAILING)
            questions.time()
            began, now = time.monotonic(), time.time()
            seen, clocks, failing, answer = questions.execute()
        clock = _clock(answer, began, now)
        seen |= {place: repr(since).encode() for place, since in _failures(failing, clock.shared).items()}
        return _Signs(_by_place(seen), _by_place(_living_clocks(clocks, clock.shared)), clock)
    except RedisError as error:
        _log.warning("The processes' heartbeats could not be read: %s", error)
        return _Signs({}, {}, _Clock(0.0, 0.0, False))


def _living_clocks(found: dict[bytes, bytes], shared: float) -> dict[bytes, bytes]:
    """Return by role and cluster the difference that is largest, and forget the processes that are silent.

    `shared` is the time by Redis' clock.
    """
    clocks: dict[bytes, bytes] = {}
    silent: list[bytes] = []
    for process, value in found.items():
        ahead, at = value.split()
        place = process.rpartition(b"/")[0]
        if shared - float(at) >= SILENT_SECONDS:
            silent.append(process)
        elif abs(float(ahead)) >= abs(float(clocks.get(place, 0))):
            clocks[place] = ahead
    if silent:
        redis_client().hdel(_CLOCKS, *silent)
    return clocks


def _by_place(found: dict[bytes, bytes]) -> dict[Place, float]:
    places = {key.decode().partition("/")[::2]: float(value) for key, value in found.items()}
    return {(Role(role), cluster): value for (role, cluster), value in places.items() if role in _ROLES}
