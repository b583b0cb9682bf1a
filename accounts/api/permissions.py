"""Who asks, and of which cluster: settled once per request, before any view runs."""

from typing import TYPE_CHECKING, Protocol, cast

from rest_framework.exceptions import ParseError, PermissionDenied
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from accounts.models import Cluster
from accounts.services.access import Access, access_of
from accounts.services.cluster_settings import cluster_named, require_not_mirrored

if TYPE_CHECKING:
    from rest_framework.views import APIView  # which loads this module while it is being loaded itself


class _ScopedView(Protocol):
    access: Access
    cluster: Cluster


class Scoped(BasePermission):
    """Lets in users who have any role, and gives the view their `access` and the `cluster` that `?cluster=` names.

    The view asks `access` what they may see and do there. Raises `NotFound` for a cluster that does not exist, and
    `MirroredFromCluster` for a write to one whose objects only the cluster itself changes.
    """

    def has_permission(self, request: Request, view: "APIView") -> bool:
        if not request.user.is_authenticated:
            return False
        name = request.query_params.get("cluster", "default")
        _refuse_nul(request)
        access = access_of(request.user, name)
        if not access.has_any_role:
            raise PermissionDenied("You have no role here yet. Ask a cluster admin to bind you to a namespace.")
        scoped = cast("_ScopedView", view)
        scoped.access = access
        scoped.cluster = cluster_named(name)
        if request.method not in SAFE_METHODS and getattr(view, "writes_what_is_mirrored", False):
            require_not_mirrored(scoped.cluster)
        return True


def _refuse_nul(request: Request) -> None:
    """No name and no text that we store holds a NUL, and the database refuses even to be asked for one."""
    texts = (request.path_info, *(text for found in request.query_params.lists() for text in found[1]))
    if any("\0" in text for text in texts):
        raise ParseError("The address holds a NUL character.")
