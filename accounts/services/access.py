"""Who may see and do what.

Three roles, each including the one before: viewer, submitter, admin; in one namespace or in all. An admin in all
namespaces, and Django's superuser, is a cluster admin: only they touch what is not a job, pod, deployment or workload.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser, User

from accounts.exceptions import NotPermitted
from accounts.models import Role, RoleBinding

Verb = Literal["view", "submit", "protect", "audit"]
"""`view` reads; `submit` creates, changes and ends; `protect` exempts from preemption; `audit` reads who did what."""

SUBMITTABLE_KINDS: Final = {"Workload"}
"""What a submitter may write in its namespaces. The kinds of jobs are added at the start."""

OPEN_KINDS: Final = frozenset(
    {
        "ResourceFlavor",
        "WorkloadPriorityClass",
        "PriorityClass",
        "RuntimeClass",
        "Topology",
        "AdmissionCheck",
        "ProvisioningRequestConfig",
        "Cluster",
        "Node",
        "Device",
    }
)
"""What everybody who has any role may read: one cannot ask for a flavor or a priority without knowing its name."""

_RANK: Final[Mapping[str, int]] = {Role.VIEWER: 1, Role.SUBMITTER: 2, Role.ADMIN: 3}
_NEEDED: Final[Mapping[Verb, int]] = {"view": 1, "submit": 2, "protect": 3, "audit": 4}
_ALL: Final = ""


@dataclass(frozen=True, slots=True)
class Access:
    """What a user may do. `roles` maps a namespace, or "" for all of them, to the role there."""

    username: str
    is_superuser: bool = False
    roles: Mapping[str, Role] = field(default_factory=dict)

    @property
    def is_cluster_admin(self) -> bool:
        return self.is_superuser or self.roles.get(_ALL) == Role.ADMIN

    @property
    def sees_everything(self) -> bool:
        """Whether every namespace may be read."""
        return self.is_superuser or _ALL in self.roles

    @property
    def has_any_role(self) -> bool:
        return self.is_superuser or bool(self.roles)

    def visible_namespaces(self) -> frozenset[str] | None:
        """The namespaces that may be read; None means all of them."""
        return None if self.sees_everything else frozenset(self.roles)

    def sees(self, namespace: str) -> bool:
        """Whether objects of this namespace may be known to exist."""
        return self._rank(namespace) >= _NEEDED["view"]

    def may(self, verb: Verb, kind: str, namespace: str = "") -> bool:
        """Whether the verb is allowed on objects of the kind; `namespace` is empty for kinds that have none."""
        if self.is_cluster_admin:
            return True
        if verb == "view":
            return self._may_view(kind, namespace)
        return bool(namespace) and kind in SUBMITTABLE_KINDS and self._rank(namespace) >= _NEEDED[verb]

    def require(self, verb: Verb, kind: str, namespace: str = "") -> None:
        """Raises `NotPermitted`, saying which role is missing, unless the verb is allowed."""
        if self.may(verb, kind, namespace):
            return
        where = f" in namespace {namespace}" if namespace else ""
        raise NotPermitted(
            f"{self.username or 'You'} may not {verb} a {kind}{where}: it needs {self._missing(verb, kind)}."
        )

    def _may_view(self, kind: str, namespace: str) -> bool:
        if namespace:
            return self._rank(namespace) >= _NEEDED["view"]
        return self.sees_everything or (self.has_any_role and kind in OPEN_KINDS)

    def _rank(self, namespace: str) -> int:
        if self.is_superuser:
            return _RANK[Role.ADMIN]
        return max((_RANK[self.roles[place]] for place in (_ALL, namespace) if place in self.roles), default=0)

    @staticmethod
    def _missing(verb: Verb, kind: str) -> str:
        if verb != "view" and kind not in SUBMITTABLE_KINDS:
            return "the role admin in all namespaces"
        return {"view": "a role there", "submit": "the role submitter there", "protect": "the role admin there"}[verb]


def access_of(user: AbstractBaseUser | AnonymousUser) -> Access:
    """What the user may do now: one query. An anonymous or deactivated user may do nothing."""
    if not isinstance(user, User) or not user.is_active:
        return Access("")
    bindings = RoleBinding.objects.filter(user=user).values_list("namespace", "role")
    return Access(user.username, user.is_superuser, {namespace: Role(role) for namespace, role in bindings})


def may(user: AbstractBaseUser | AnonymousUser, verb: Verb, kind: str, namespace: str = "") -> bool:
    """Whether the user may do this to objects of the kind in the namespace ("" for kinds that have none)."""
    return access_of(user).may(verb, kind, namespace)


def visible_namespaces(user: AbstractBaseUser | AnonymousUser) -> frozenset[str] | None:
    """The namespaces that the user may read; None means all of them."""
    return access_of(user).visible_namespaces()


def require_all(access: Access, verb: Verb, objects: Iterable[tuple[str, str]]) -> None:
    """As `Access.require` for many (kind, namespace) pairs; each pair is asked once."""
    for kind, namespace in sorted(set(objects)):
        access.require(verb, kind, namespace)
