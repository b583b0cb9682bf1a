"""What every view in a cluster knows of its request."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ClassVar, Final

from django.db import transaction
from rest_framework.exceptions import ValidationError
from rest_framework.generics import GenericAPIView
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.flags import flag
from accounts.exceptions import NotFound
from accounts.models import Cluster
from accounts.services.access import Access, Verb
from accounts.services.reach import Reach

DRY_RUN: Final = "dry_run"


class ClusterView(GenericAPIView[Any]):
    """A view in one cluster, or in several. The permission class `Scoped` sets `reach`, and of one cluster `access` and
    `cluster`, before the view runs."""

    access: Access
    cluster: Cluster
    reach: Reach
    spans_clusters: ClassVar[bool] = False
    """Whether a read may be of several clusters (`?cluster=a,b`, `?cluster=*`); it then uses `reach` alone."""
    default_cluster: ClassVar[str] = "default"
    """What a request without `?cluster=` is about."""
    keyset: tuple[str, ...] = ("id",)
    writes_what_is_mirrored: ClassVar[bool] = True
    """Whether a write of this view is refused where our rows only repeat what the cluster says."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """As DRF's; a write with `dry_run=true` is done in a transaction that is taken back."""
        super().initial(request, *args, **kwargs)
        method = request.method or ""
        if method not in SAFE_METHODS and flag(request, DRY_RUN):
            setattr(self, method.lower(), _taken_back(getattr(self, method.lower(), self.http_method_not_allowed)))

    def require(self, verb: Verb, kind: str, namespace: str = "", name: str = "") -> None:
        """Raises `NotPermitted`; for a namespace whose objects the user may not even know of, `NotFound`."""
        if namespace and not self.access.sees(namespace):
            raise self.missing(kind, *filter(None, (namespace, name)))
        self.access.require(verb, kind, namespace)

    def missing(self, kind: str, *names: str) -> NotFound:
        """The error for an object that does not exist, or that this user may not know of: both read the same."""
        return NotFound(f"There is no {kind} {'/'.join(names)} in cluster {self.cluster.name}.")


def json_object(data: Any) -> Mapping[str, Any]:
    """The request's body as a JSON object; raises ValidationError."""
    if not isinstance(data, Mapping):
        raise ValidationError({"": "The body must be a JSON object."})
    return data


def _taken_back(handler: Callable[..., Response]) -> Callable[..., Response]:
    """What the handler would answer: its rows are rolled back, and nobody is woken for them."""

    @wraps(handler)
    def handle(*args: Any, **kwargs: Any) -> Response:
        with transaction.atomic():
            response = handler(*args, **kwargs)
            transaction.set_rollback(True)
        del response["ETag"]  # of a state that is not stored
        del response["Location"]
        return response

    return handle
