"""Whether this process can serve, and whether the processes behind it show life."""

import time
from datetime import datetime

from django.db import DatabaseError, close_old_connections, connection
from redis import RedisError

from accounts.models import Cluster
from foundation.heartbeat import Role, RoleHealth, role_health
from foundation.redis_client import redis_client


def readiness() -> dict[str, str | dict[str, str]]:
    """Return the state of the database and Redis, "ok" or the name of the error, and that of the other processes."""
    close_old_connections()  # Django closes them only at the end of a request
    database, redis = _database(), _redis()
    return {"database": database, "redis": redis, "roles": _roles() if database == redis == "ok" else {}}


def _roles() -> dict[str, str]:
    """Return the processes that work behind the pages, by role: "ok", for how long it has been silent, or its wrong
    clock. For the scheduler also when one of its runs last ended well. Without names of clusters: no login is needed.
    """
    found: dict[str, str] = {}
    now = time.time()
    try:
        clusters = dict(Cluster.objects.values_list("name", "scheduler_lease__renewed_at"))
    except DatabaseError as error:
        return {"all": f"not known: {type(error).__name__}"}
    for each in role_health(list(clusters), now):
        if fault := _fault(each, now):
            found[each.role.value] = fault
        found.setdefault(each.role.value, "ok")
    runs = [at for at in clusters.values() if at is not None]
    if len(runs) < len(clusters):
        found[Role.SCHEDULER.value] += ", some clusters have had no run"
    if runs:
        found[Role.SCHEDULER.value] += f", last successful run {_age(min(runs), now)} ago"
    return found


def _fault(role: RoleHealth, now: float) -> str:
    if role.role is Role.CLUSTER_PUSH and not role.alive and role.last_seen_at is not None:
        return f"no sweep has ended for {_age(role.last_seen_at, now)}"
    if not role.alive:
        return "silent" if role.last_seen_at is None else f"silent for {_age(role.last_seen_at, now)}"
    return role.clock_fault


def _age(at: datetime, now: float) -> str:
    return f"{max(0, round(now - at.timestamp()))} s"


def _database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError as error:
        return type(error).__name__
    return "ok"


def _redis() -> str:
    try:
        redis_client().ping()
    except RedisError as error:
        return type(error).__name__
    return "ok"
