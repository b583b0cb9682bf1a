"""Whether this process can serve."""

from django.db import DatabaseError, close_old_connections, connection
from redis import RedisError

from accounts.redis_client import redis_client


def readiness() -> dict[str, str]:
    """What the database and Redis say: "ok", or the name of the error."""
    close_old_connections()  # outside a request nobody else does
    return {"database": _database(), "redis": _redis()}


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
