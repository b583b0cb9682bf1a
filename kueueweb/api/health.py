"""Whether this process lives, and whether it can serve."""

from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse
from redis import RedisError

from accounts.redis_client import redis_client


def healthz(request: HttpRequest) -> JsonResponse:
    """The process answers. It asks nothing else: a broken database is no reason to restart us."""
    return JsonResponse({"status": "ok"})


def readyz(request: HttpRequest) -> JsonResponse:
    """200 when the database and Redis answer, else 503 with what does not."""
    checks = {"database": _database(), "redis": _redis()}
    ready = all(answer == "ok" for answer in checks.values())
    return JsonResponse({"status": "ok" if ready else "unavailable", **checks}, status=200 if ready else 503)


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
