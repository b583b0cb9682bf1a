"""What every view of gpus knows of its request."""

from collections.abc import Collection
from typing import Any, Protocol

from rest_framework.exceptions import NotFound
from rest_framework.generics import GenericAPIView


class Access(Protocol):
    """What gpus asks of the user's rights; the roles themselves are none of its business."""

    @property
    def is_cluster_admin(self) -> bool:
        """Whether they may close and open hardware."""

    def visible_namespaces(self) -> Collection[str] | None:
        """The namespaces whose tenants may be named; None means all of them."""


class _Cluster(Protocol):
    pk: int
    name: str


class ClusterView(GenericAPIView[Any]):
    """A view in one cluster. The project's permission class sets `access` and `cluster` before the view runs."""

    access: Access
    cluster: _Cluster
    keyset: tuple[str, ...] = ("id",)

    def missing(self, kind: str, name: str) -> NotFound:
        """The error for an object that is not there."""
        return NotFound(f"There is no {kind} {name} in cluster {self.cluster.name}.")
