"""The clusters of a request, and the user's rights in each of them.

`?cluster=` names one cluster, several separated by commas, or `*` for all in which the user has a role.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any, Final

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from django.db.models import Q

from accounts.models import Cluster
from accounts.services.access import Access, Verb, accesses_of
from foundation.exceptions import NotFound, NotPermitted

EVERY_CLUSTER: Final = "*"
SEPARATOR: Final = ","

Names = Collection[str] | None
"""Names that may be seen; None means all."""

_NO_ROLE: Final = "You have no role here yet. Ask a cluster admin to bind you to a namespace."


class Reach:
    """The clusters of a request, by name, with the user's access to each. `all_readable`: `*` means all of them."""

    def __init__(self, parts: Iterable[tuple[Cluster, Access]], *, all_readable: bool = False) -> None:
        self._parts = {cluster.pk: (cluster, access) for cluster, access in parts}
        self._all_readable = all_readable

    @property
    def clusters(self) -> list[Cluster]:
        return [cluster for cluster, _ in self._parts.values()]

    @property
    def is_of_several(self) -> bool:
        return len(self._parts) > 1

    def name(self, cluster_id: int) -> str:
        return self._parts[cluster_id][0].name

    def access(self, cluster_id: int) -> Access:
        return self._parts[cluster_id][1]

    def permitting(self, verb: Verb, kind: str, also: Callable[[Access], bool] | None = None) -> Reach:
        """Keep the clusters in which the user may do this to objects of the kind, or which `also` permits.

        With `*`, other clusters are left out, as they are for roles. Raises `NotPermitted` if a named cluster is
        refused, or if no cluster is left.
        """
        left = {
            pk: (cluster, access)
            for pk, (cluster, access) in self._parts.items()
            if access.may(verb, kind) or (also is not None and also(access))
        }
        if not left or (len(left) < len(self._parts) and not self._all_readable):
            refused = next(access for pk, (_, access) in self._parts.items() if pk not in left)
            refused.require(verb, kind)
        return Reach(left.values(), all_readable=self._all_readable)

    def namespaces(self) -> dict[int, Names]:
        """Return the readable namespaces of each cluster."""
        return {pk: access.visible_namespaces() for pk, (_, access) in self._parts.items()}

    def rows(self, column: str = "", allowed: Mapping[int, Names] | None = None, *, cluster: str = "cluster") -> Q:
        """Return rows of these clusters; with a column, only rows whose value is one of the names allowed there.
        `cluster` is the column of a row's cluster: its key, or its name if the column's name ends in `_name`."""
        together: dict[frozenset[str] | None, list[Any]] = {}
        for pk, (row, _) in self._parts.items():
            names = None if allowed is None else allowed[pk]
            alike = together.setdefault(None if names is None else frozenset(names), [])
            alike.append(row.name if cluster.endswith("_name") else pk)
        found: list[Q] = []
        for known, clusters in together.items():
            here = Q(**{cluster: clusters[0]} if len(clusters) == 1 else {f"{cluster}__in": clusters})
            found.append(here if known is None else here & Q(**{f"{column}__in": known}))
        return reduce(or_, found) if found else Q(pk__in=[])

    def rows_in_namespaces(self, column: str = "namespace", *, cluster: str = "cluster") -> Q:
        """Return the rows in readable namespaces."""
        return self.rows(column, self.namespaces(), cluster=cluster)


def reach_of(user: AbstractBaseUser | AnonymousUser, names: Sequence[str] | None) -> Reach:
    """Return the clusters with these names, or all clusters in which the user has a role.

    Two queries, however many clusters there are. Raises `NotPermitted` if the user lacks a role in one of them, or has
    no role at all; `NotFound` for a cluster that does not exist.
    """
    if names is None:
        found = {row.name: row for row in Cluster.objects.order_by("name")}
        accesses = accesses_of(user, list(found))
        seen = [(row, accesses[name]) for name, row in found.items() if accesses[name].has_any_role]
        if not seen:
            raise NotPermitted(_NO_ROLE)
        return Reach(seen, all_readable=True)
    accesses = accesses_of(user, names)
    if not all(access.has_any_role for access in accesses.values()):
        raise NotPermitted(_NO_ROLE)
    found = {row.name: row for row in Cluster.objects.filter(name__in=names).order_by("name")}
    for name in names:
        if name not in found:
            raise NotFound(f"There is no cluster named {name!r}.")
    return Reach((row, accesses[name]) for name, row in found.items())
