"""Base class of the views that belong to a cluster."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import wraps
from typing import Any, ClassVar, Final

from django.db import transaction
from django.utils.dateparse import parse_datetime
from rest_framework.exceptions import ValidationError
from rest_framework.generics import GenericAPIView
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.flags import flag
from accounts.models import Cluster
from accounts.services.access import Access, Verb
from accounts.services.reach import Reach
from foundation.exceptions import NotFound
from foundation.shown_past import Past, open_past

DRY_RUN: Final = "dry_run"
AT: Final = "at"


class ClusterView(GenericAPIView[Any]):
    """A view of one cluster or of several. The permission class `Scoped` sets `reach` before the view runs, and for
    a single cluster also `access` and `cluster`."""

    access: Access
    cluster: Cluster
    reach: Reach
    spans_clusters: ClassVar[bool] = False
    """Whether a read may be of several clusters (`?cluster=a,b`, `?cluster=*`); it then uses `reach` alone."""
    default_cluster: ClassVar[str] = "default"
    """The cluster of a request without `?cluster=`."""
    keyset: tuple[str, ...] = ("id",)
    looks_back: ClassVar[bool] = False
    """Whether a read may be of the past (`?at=`): of the rows of a checkpoint, by the rights of now."""
    reads_past_rows: ClassVar[bool] = True
    """Whether a view that looks back does so by past rows; otherwise its handler takes the moment from `moment_in`."""
    writes_what_is_mirrored: ClassVar[bool] = True
    """Whether writes of this view are refused in clusters whose objects our rows only mirror."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Wrap the handler of a write with `dry_run=true` in a transaction that is rolled back. Wrap the handler of a
        read with `at` in a transaction that shows the rows of that moment."""
        super().initial(request, *args, **kwargs)
        method = request.method or ""
        if self.looks_back and self.reads_past_rows and method in SAFE_METHODS and AT in request.query_params:
            setattr(self, method.lower(), _as_of(self, getattr(self, method.lower(), self.http_method_not_allowed)))
        if method not in SAFE_METHODS and flag(request, DRY_RUN):
            setattr(self, method.lower(), _taken_back(getattr(self, method.lower(), self.http_method_not_allowed)))

    def require(self, verb: Verb, kind: str, namespace: str = "", name: str = "") -> None:
        """Raise `NotPermitted` unless the verb is allowed, or `NotFound` in a namespace that the user may not read."""
        if namespace and not self.access.sees(namespace):
            raise self.missing(kind, *filter(None, (namespace, name)))
        self.access.require(verb, kind, namespace)

    def missing(self, kind: str, *names: str) -> NotFound:
        """Return the same error for an object that does not exist and for one that the user may not see."""
        return NotFound(f"There is no {kind} {'/'.join(names)} in cluster {self.cluster.name}.")


def json_object(data: Any) -> Mapping[str, Any]:
    """Return the request's body as a JSON object; raises ValidationError."""
    if not isinstance(data, Mapping):
        raise ValidationError({"": "The body must be a JSON object."})
    return data


def _taken_back(handler: Callable[..., Response]) -> Callable[..., Response]:
    """Return the handler's answer, but roll its transaction back and wake no worker."""

    @wraps(handler)
    def handle(*args: Any, **kwargs: Any) -> Response:
        with transaction.atomic():
            response = handler(*args, **kwargs)
            transaction.set_rollback(True)
        del response["ETag"]  # of a state that is not stored
        del response["Location"]
        return response

    return handle


def _as_of(view: ClusterView, handler: Callable[..., Response]) -> Callable[..., Response]:
    """Return the handler's answer by the rows of the past, with headers that say of which moment they are."""

    @wraps(handler)
    def handle(request: Request, *args: Any, **kwargs: Any) -> Response:
        if view.reach.is_of_several:
            raise ValidationError({"cluster": f"Required value: with {AT}, name one cluster."})
        with open_past(view.cluster.pk, moment_in(request)) as past:
            response = handler(request, *args, **kwargs)
        del response["ETag"]  # of a state that cannot be written
        for name, value in past_headers(past).items():
            response[name] = value
        return response

    return handle


def moment_in(request: Request) -> datetime:
    """Return the moment that the request asks for, in UTC; raises ValidationError."""
    text = request.query_params[AT]
    found = moment_of(text)
    if found is None:
        rule = f"Invalid value: {text!r}: must be an RFC 3339 time with its zone, such as 2026-01-05T09:00:00Z."
        raise ValidationError({AT: rule})
    return found


def moment_of(text: str) -> datetime | None:
    """Return the moment in UTC; None for text that is not a time with a zone, or a time before the year 1 or after
    9999."""
    try:
        found = parse_datetime(text)
        return None if found is None or found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def past_headers(past: Past) -> dict[str, str]:
    """Return the headers that name the time of the rows of an answer about the past, and whether it is the requested
    moment, else why not."""
    headers = {"Kueueweb-Checkpoint": past.taken_at.isoformat(), "Kueueweb-Exact": str(past.exact).lower()}
    return headers | ({"Kueueweb-Inexact-Reason": past.reason} if past.reason else {})
