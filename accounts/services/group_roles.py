"""Roles that the environment gives to groups (OIDC_GROUP_ROLES), kept as role bindings of their own names."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Final

from django.core.exceptions import ImproperlyConfigured
from django.db import transaction

from accounts.models import Role, RoleBinding

PREFIX: Final = "oidc-group-role-"
_FORM: Final = "GROUP=ROLE, GROUP=ROLE:NAMESPACE or GROUP=queue-admin:COHORT"


@dataclass(frozen=True, slots=True)
class GroupRole:
    """A role of a group in every cluster: in one namespace or in all, or below a cohort."""

    group: str
    role: Role
    namespace: str = ""
    cohort: str = ""

    @property
    def name(self) -> str:
        """Return the name of its binding. Each rule has its own, so that a binding is replaced, never changed."""
        parts = "\n".join((self.group, self.role, self.namespace, self.cohort))
        return PREFIX + sha256(parts.encode()).hexdigest()[:16]


def read_group_roles(words: Sequence[str]) -> frozenset[GroupRole]:
    """Read the rules from the setting. Raises ImproperlyConfigured, which names the rule."""
    return frozenset(_read(word) for word in words)


def apply_group_roles(rules: frozenset[GroupRole]) -> None:
    """Create missing bindings and delete the bindings of removed rules. Other bindings stay."""
    wanted = {rule.name: rule for rule in rules}
    with transaction.atomic():
        ours = RoleBinding.objects.select_for_update().filter(name__startswith=PREFIX, cluster=None)
        there = set(ours.values_list("name", flat=True))
        ours.filter(name__in=there - set(wanted)).delete()
        missing = [wanted[name] for name in sorted(set(wanted) - there)]
        RoleBinding.objects.bulk_create(
            [RoleBinding(name=rule.name, **asdict(rule)) for rule in missing],
            ignore_conflicts=True,  # two web processes start at once
        )


def _read(word: str) -> GroupRole:
    group, equals, given = word.rpartition("=")
    name, _, where = given.partition(":")
    group, name, where = group.strip(), name.strip(), where.strip()
    if not equals or not group:
        raise ImproperlyConfigured(
            f"OIDC_GROUP_ROLES contains {word!r}, but each entry must be {_FORM}, separated by commas."
        )
    if name not in set(Role):
        raise ImproperlyConfigured(
            f"OIDC_GROUP_ROLES gives the group {group!r} the role {name!r}: it must be one of {', '.join(Role)}."
        )
    role = Role(name)
    if role == Role.QUEUE_ADMIN:
        if not where:
            raise ImproperlyConfigured(
                f"OIDC_GROUP_ROLES gives the group {group} the role queue-admin without a cohort: write "
                f"{group}={role}:COHORT."
            )
        return GroupRole(group, role, cohort=where)
    return GroupRole(group, role, namespace=where)
