"""What every view in a cluster knows of its request."""

from collections.abc import Mapping
from typing import Any, ClassVar

from rest_framework.exceptions import ValidationError
from rest_framework.generics import GenericAPIView

from accounts.exceptions import NotFound
from accounts.models import Cluster
from accounts.services.access import Access, Verb


class ClusterView(GenericAPIView[Any]):
    """A view in one cluster. The permission class `Scoped` sets `access` and `cluster` before the view runs."""

    access: Access
    cluster: Cluster
    keyset: tuple[str, ...] = ("id",)
    writes_what_is_mirrored: ClassVar[bool] = True
    """Whether a write of this view is refused where our rows only repeat what the cluster says."""

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
