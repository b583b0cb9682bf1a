"""The request to watch a workload. The web process waits for it (kueueweb.web.watching), on its event loop."""

from dataclasses import asdict, dataclass
from typing import Any, Final, Self

import orjson
from django.db import close_old_connections, connection
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, PolymorphicProxySerializer, extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from accounts.api.flags import flag
from foundation.serving.replaced import ReplacedResponse
from queues.api.filters import query_text
from queues.api.serializers import WorkloadDetailSerializer
from queues.querysets import workload_versions

WATCH_HEADER: Final = "X-Kueueweb-Watch"
"""The header of an answer that the web process replaces after the awaited change."""
WATCH_MEDIA_TYPE: Final = "application/x-ndjson"
MAX_WATCH_SECONDS: Final = 600
WATCH_NAMES: Final = ("watch", "resource_version", "timeout_seconds")
_POLL_SECONDS: Final = 30

WATCH_PARAMETERS: Final = (
    OpenApiParameter(
        "watch",
        bool,
        description="Stream one line of JSON for the current state and one for each newer state, until the "
        "workload has "
        "finished, is deleted, or the time is over.",
    ),
    OpenApiParameter(
        "resource_version",
        OpenApiTypes.STR,
        description=(
            "The `resource_version` that the client already has. The answer is sent once the workload has a newer "
            "version; 304 if it has not changed by the time-out. With `watch`, this version is not repeated."
        ),
    ),
    OpenApiParameter(
        "timeout_seconds",
        {"type": "integer", "minimum": 0, "maximum": MAX_WATCH_SECONDS},
        description=f"Maximum wait in seconds; {MAX_WATCH_SECONDS} by default with `watch`, else {_POLL_SECONDS}.",
    ),
)


class WatchErrorSerializer(serializers.Serializer[Any]):
    """The error that the same request would now get."""

    status = serializers.IntegerField(help_text="The HTTP status of the error.")
    reason = serializers.CharField()
    message = serializers.CharField()


class WatchBookmarkSerializer(serializers.Serializer[Any]):
    """The last version that was sent: nothing has changed since."""

    resource_version = serializers.CharField()


_OBJECTS: Final = (WorkloadDetailSerializer, WatchBookmarkSerializer, WatchErrorSerializer)


@extend_schema_field(PolymorphicProxySerializer("WatchedObject", list(_OBJECTS), resource_type_field_name=None))
class _WatchedField(serializers.JSONField):
    """The workload; for BOOKMARK only its version; for ERROR the refusal."""


class WatchEventSerializer(serializers.Serializer[Any]):
    """A line of a watch, with the event types of Kubernetes."""

    type = serializers.ChoiceField(["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"])
    object = _WatchedField()


WATCH_ANSWERS: Final = {
    (200, "application/json"): WorkloadDetailSerializer,
    (200, WATCH_MEDIA_TYPE): OpenApiResponse(WatchEventSerializer, "With `watch`, one such object per line."),
    304: OpenApiResponse(None, "The workload still has the given `resource_version`."),
}


@dataclass(frozen=True, slots=True)
class WatchQuery:
    """A watch that Django has permitted. `version` is the client's version; empty for none."""

    workload: int
    user: int
    version: str
    stream: bool
    seconds: int

    def encoded(self) -> str:
        """Return the query as text for a header."""
        return orjson.dumps(asdict(self)).decode()

    @classmethod
    def decoded(cls, text: str | bytes) -> Self:
        """Parse the text of `encoded`."""
        return cls(**orjson.loads(text))


def asks_to_wait(request: Request) -> bool:
    """Return whether the request asks for a delayed or repeated answer. Raises ValidationError."""
    stream, version = flag(request, "watch"), query_text(request.query_params, "resource_version")
    if not stream and not version and "timeout_seconds" in request.query_params:
        raise ValidationError({"timeout_seconds": "needs watch=true, or the resource_version that you have."})
    return request.method == "GET" and (stream or bool(version))


def wait_for(workload: int, request: Request) -> HttpResponse:
    """Return an answer that the web process replaces. Without the web process, the client reads in it that watching is
    unavailable."""
    stream = flag(request, "watch")
    seconds = query_text(request.query_params, "timeout_seconds") or (MAX_WATCH_SECONDS if stream else _POLL_SECONDS)
    query = WatchQuery(
        workload=workload,
        user=request.user.pk or 0,
        version=query_text(request.query_params, "resource_version"),
        stream=stream,
        seconds=int(seconds),
    )
    message = "This process answers at once and never waits. Omit watch and resource_version."
    content = orjson.dumps({"reason": "Unavailable", "message": message, "errors": []})
    return ReplacedResponse(
        content, status=503, content_type="application/json", headers={WATCH_HEADER: query.encoded(), "Retry-After": 5}
    )


def read_versions(workloads: list[int]) -> dict[int, str]:
    """Return the versions of the existing workloads. The thread that calls it keeps its connection while watches
    last."""
    close_old_connections()
    if not workloads:
        connection.close()
        return {}
    return workload_versions(workloads)
