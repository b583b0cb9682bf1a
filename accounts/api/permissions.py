"""Determines the user and the clusters of a request, once, before the view runs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, cast

from rest_framework.exceptions import ParseError, ValidationError
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from accounts.models import Cluster
from accounts.services.access import Access
from accounts.services.cluster_settings import require_not_mirrored
from accounts.services.reach import EVERY_CLUSTER, SEPARATOR, Reach, reach_of

if TYPE_CHECKING:
    from rest_framework.views import APIView  # That module imports this one.


class _ScopedView(Protocol):
    access: Access
    cluster: Cluster
    reach: Reach


class Scoped(BasePermission):
    """Admits users with any role, and sets the view's `reach` from `?cluster=`. For a single cluster it also sets
    `cluster` and the user's `access` to it.

    The view asks `reach` or `access` which objects the user may see and change. A read of a view that `spans_clusters`
    may name several clusters; every other request names one. Raises `NotFound` for a cluster that does not exist, and
    `MirroredFromCluster` for a write to a cluster whose objects we only mirror.
    """

    def has_permission(self, request: Request, view: "APIView") -> bool:
        if not request.user.is_authenticated:
            return False
        asked = request.query_params.get("cluster", getattr(view, "default_cluster", "default"))
        _refuse_nul(request)
        reads = request.method in SAFE_METHODS
        scoped = cast("_ScopedView", view)
        scoped.reach = reach_of(request.user, _names(asked, several=reads and getattr(view, "spans_clusters", False)))
        if scoped.reach.is_of_several:
            return True
        [scoped.cluster] = scoped.reach.clusters
        scoped.access = scoped.reach.access(scoped.cluster.pk)
        if not reads and getattr(view, "writes_what_is_mirrored", False):
            require_not_mirrored(scoped.cluster)
        return True


def _names(asked: str, *, several: bool) -> Sequence[str] | None:
    """Return the names of the clusters in the request; None means all of them."""
    names = asked.split(SEPARATOR)
    if not several and (asked == EVERY_CLUSTER or len(names) > 1):
        raise ValidationError({"cluster": f"Invalid value: {asked!r}: this address serves one cluster: name one."})
    if len(names) > 1 and not all(names):
        raise ValidationError({"cluster": f"Required value: {asked!r} contains an empty name."})
    if len(set(names)) < len(names):
        raise ValidationError({"cluster": f"Duplicate value: {asked!r} names a cluster twice."})
    return None if asked == EVERY_CLUSTER else names


def _refuse_nul(request: Request) -> None:
    """Refuse parameters with a NUL character, which PostgreSQL can neither store nor compare."""
    texts = (request.path_info, *(text for found in request.query_params.lists() for text in found[1]))
    if any("\0" in text for text in texts):
        raise ParseError("The address holds a NUL character.")
