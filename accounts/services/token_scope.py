"""The scope of a token, never wider than its user's rights."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from accounts.models import Role, TokenScope

_ALL: Final = ""
_KEPT: Final[Mapping[str, Mapping[Role, frozenset[Role]]]] = {
    TokenScope.METRICS: {},
    TokenScope.READ: {
        Role.VIEWER: frozenset({Role.VIEWER}),
        Role.SUBMITTER: frozenset({Role.VIEWER}),
        Role.ADMIN: frozenset({Role.VIEWER}),
        Role.AUDITOR: frozenset({Role.AUDITOR}),
    },
    TokenScope.SUBMIT: {
        Role.VIEWER: frozenset({Role.VIEWER}),
        Role.SUBMITTER: frozenset({Role.SUBMITTER}),
        Role.ADMIN: frozenset({Role.SUBMITTER}),
        Role.AUDITOR: frozenset({Role.AUDITOR}),
    },
}
"""The roles that remain of a role in each scope."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The limits of a token. Without limits it has all of its user's rights."""

    level: str = TokenScope.ADMINISTER
    namespaces: frozenset[str] = frozenset()
    clusters: frozenset[str] = frozenset()

    @property
    def is_whole(self) -> bool:
        """Whether the token has all of its user's rights."""
        return self.level == TokenScope.ADMINISTER and not self.namespaces and not self.clusters

    def reaches(self, cluster: str | None) -> bool:
        """Return whether the token is valid in this cluster; None means every cluster."""
        return not self.clusters or (cluster is not None and cluster in self.clusters)

    def roles(self, roles: Mapping[str, frozenset[Role]]) -> dict[str, frozenset[Role]]:
        """Return the user's roles within the token's scope."""
        found: dict[str, frozenset[Role]] = {}
        for namespace, held in self._in_namespaces(roles).items():
            kept = held
            if self.level in _KEPT:
                kept = frozenset[Role]().union(*(_KEPT[self.level].get(role, frozenset()) for role in held))
            if kept:
                found[namespace] = kept
        return found

    def _in_namespaces(self, roles: Mapping[str, frozenset[Role]]) -> Mapping[str, frozenset[Role]]:
        if not self.namespaces:
            return roles
        places = {
            namespace: roles.get(_ALL, frozenset()) | roles.get(namespace, frozenset()) for namespace in self.namespaces
        }
        return {namespace: held for namespace, held in places.items() if held}


WHOLE: Final = Scope()


def scope_of(user: Any) -> Scope:
    """Return the scope of the request's token. A session has no limits."""
    found = getattr(user, "token_scope", WHOLE)
    return found if isinstance(found, Scope) else WHOLE
