"""The table of permissions, for REST, the live stream, applies and the command line.

A role applies to one cluster or all, and there to one namespace or all; a queue admin's applies below a cohort. An
admin of all namespaces of a cluster and Django's superuser are cluster admins, who may do everything there.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser, Group, User
from django.db.models import Q, QuerySet

from accounts.models import Cluster, Role, RoleBinding, TokenScope
from accounts.services.token_scope import WHOLE, Scope, scope_of
from foundation.exceptions import NotPermitted

Verb = Literal["view", "submit", "protect", "audit"]
"""`view` reads; `submit` creates, changes and ends; `protect` exempts from preemption; `audit` reads who did what."""

SUBMITTABLE_KINDS: Final = {"Workload"}
"""Kinds that a submitter may write in its namespaces. The kinds of jobs are added at the start."""

OPEN_KINDS: Final = frozenset(
    {
        "ResourceFlavor",
        "WorkloadPriorityClass",
        "PriorityClass",
        "RuntimeClass",
        "Topology",
        "AdmissionCheck",
        "ProvisioningRequestConfig",
        "MultiKueueCluster",
        "MultiKueueConfig",
        "Cluster",
        "Node",
        "Device",
    }
)
"""Readable by every user with any role: a job cannot name a flavor or priority class without knowing its name."""

WHOLE_KINDS: Final = frozenset({"Reservation"})
"""Kinds of the cluster that name namespaces and users: read with a role in all namespaces."""

TREE_KINDS: Final = frozenset({"Cohort", "ClusterQueue", "LocalQueue"})
"""Kinds that a queue admin may change, while the object is and stays below its cohort."""

SECRET_KINDS: Final = frozenset({"RoleBinding", "AuditRecord"})
"""Kinds that not every reader of a cluster may read: role bindings and the audit."""

RIGHTS: Final[Mapping[Role, frozenset[Verb]]] = {
    Role.VIEWER: frozenset({"view"}),
    Role.SUBMITTER: frozenset({"view", "submit"}),
    Role.ADMIN: frozenset({"view", "submit", "protect"}),
    Role.AUDITOR: frozenset({"view", "audit"}),
    Role.QUEUE_ADMIN: frozenset(),
}
"""The verbs of each role in its namespaces, on jobs and workloads; in all namespaces, `view` and `audit` reach
everything.

A queue admin's rights are on TREE_KINDS, not on namespaces; a cluster admin needs no entry.
"""
_ALL: Final = ""


@dataclass(frozen=True, slots=True)
class Access:
    """The rights of a user in a cluster. `roles` maps a namespace, or "" for all of them, to the roles there."""

    username: str
    is_superuser: bool = False
    roles: Mapping[str, frozenset[Role]] = field(default_factory=dict)
    cohorts: frozenset[str] = frozenset()
    """The cohorts below which the user is a queue admin."""
    scope: Scope = WHOLE
    """The scope of the token of the request; `roles` are cut to it already."""
    reads_metrics: bool = False
    """Whether the user, and the token, may read the metrics of all clusters."""

    @property
    def is_cluster_admin(self) -> bool:
        return self.is_superuser or Role.ADMIN in self.roles.get(_ALL, ())

    @property
    def sees_everything(self) -> bool:
        """Whether every namespace may be read."""
        return self.is_superuser or _ALL in self.roles

    @property
    def has_any_role(self) -> bool:
        return self.is_superuser or bool(self.roles) or bool(self.cohorts)

    def visible_namespaces(self) -> frozenset[str] | None:
        """Return the namespaces that may be read; None means all of them."""
        return None if self.sees_everything else frozenset(self.roles)

    def audited_namespaces(self) -> frozenset[str] | None:
        """Return the namespaces whose audit may be read; None means everything."""
        if self.is_cluster_admin or "audit" in self._verbs(_ALL):
            return None
        return frozenset(namespace for namespace in self.roles if "audit" in self._verbs(namespace))

    def sees(self, namespace: str) -> bool:
        """Return whether the user may know that objects of this namespace exist."""
        return self.is_superuser or "view" in self._verbs(namespace)

    def may(self, verb: Verb, kind: str, namespace: str = "") -> bool:
        """Return whether the verb is allowed on objects of the kind; `namespace` is empty for kinds that have none."""
        if self.is_cluster_admin:
            return True
        if kind in SECRET_KINDS:
            return "audit" in self._verbs(namespace) and verb in ("view", "audit")
        if verb == "view":
            return self._may_view(kind, namespace)
        return bool(namespace) and kind in SUBMITTABLE_KINDS and verb in self._verbs(namespace)

    def may_in_tree(self, kind: str) -> bool:
        """Return whether the user may change objects of the kind below its cohorts (see `queues.services.owners`)."""
        return kind in TREE_KINDS and bool(self.cohorts)

    def require(self, verb: Verb, kind: str, namespace: str = "") -> None:
        """Raise `NotPermitted`, which names the missing role, unless the verb is allowed."""
        if self.may(verb, kind, namespace):
            return
        where = f" in namespace {namespace}" if namespace else ""
        raise NotPermitted(
            f"{self.username or 'You'} may not {verb} a {kind}{where}: this requires {self._missing(verb, kind)}."
        )

    def _may_view(self, kind: str, namespace: str) -> bool:
        if namespace:
            return self.sees(namespace)
        return self.sees_everything or (self.has_any_role and kind in OPEN_KINDS) or self.may_in_tree(kind)

    def _verbs(self, namespace: str) -> frozenset[Verb]:
        return frozenset[Verb]().union(
            *(RIGHTS[role] for place in {_ALL, namespace} for role in self.roles.get(place, ()))
        )

    @staticmethod
    def _missing(verb: Verb, kind: str) -> str:
        if kind in SECRET_KINDS and verb in ("view", "audit"):
            return "the role auditor, or admin in all namespaces"
        if verb != "view" and kind in TREE_KINDS:
            return "the role admin in all namespaces, or queue-admin of a cohort above it"
        if verb != "view" and kind not in SUBMITTABLE_KINDS:
            return "the role admin in all namespaces"
        return {"view": "a role there", "submit": "the role submitter there", "protect": "the role admin there"}.get(
            verb, "the role auditor there"
        )


def bindings_of(user: AbstractBaseUser | AnonymousUser) -> QuerySet[RoleBinding]:
    """Return the bindings of a user and of their groups in all clusters; none for anonymous and deactivated users."""
    if not isinstance(user, User) or not user.is_active:
        return RoleBinding.objects.none()
    groups = Group.objects.filter(user=user).values("name")
    return RoleBinding.objects.filter(Q(username=user.username) | Q(group__in=groups), deletion_requested_at=None)


def groups_of(username: str) -> list[str]:
    """Return the names of a user's groups, in the order of their code points, which is that of submissions whatever the
    collation of the database; none for an unknown user."""
    return sorted(Group.objects.filter(user__username=username).values_list("name", flat=True))


def access_of(user: AbstractBaseUser | AnonymousUser, cluster: Cluster | str | None = None) -> Access:
    """Return the user's present rights in a cluster, or without one in every cluster. One query."""
    name = cluster.name if isinstance(cluster, Cluster) else cluster
    here = Q(cluster=None) if name is None else Q(cluster=None) | Q(cluster__name=name)
    return _access(user, bindings_of(user).filter(here).values("role", "namespace", "cohort"), name)


def accesses_of(user: AbstractBaseUser | AnonymousUser, names: Collection[str]) -> dict[str, Access]:
    """Return the user's present rights in each of these clusters, by name. One query for all of them."""
    bindings = bindings_of(user).filter(Q(cluster=None) | Q(cluster__name__in=names))
    rows = list(bindings.values("role", "namespace", "cohort", "cluster__name"))
    return {name: _access(user, [row for row in rows if row["cluster__name"] in (None, name)], name) for name in names}


def _access(
    user: AbstractBaseUser | AnonymousUser, bindings: Iterable[Mapping[str, Any]], cluster: str | None
) -> Access:
    """Return the rights that these bindings of the cluster give the user."""
    if not isinstance(user, User) or not user.is_active:
        return Access("")
    roles: dict[str, set[Role]] = {}
    cohorts: set[str] = set()
    for binding in bindings:
        if binding["role"] == Role.QUEUE_ADMIN:
            cohorts.add(binding["cohort"])
        else:
            roles.setdefault(binding["namespace"], set()).add(Role(binding["role"]))
    whole = Access(
        user.username,
        user.is_superuser,
        {namespace: frozenset(held) for namespace, held in roles.items()},
        frozenset(cohorts),
    )
    return _within(whole, scope_of(user), cluster)


def _within(access: Access, scope: Scope, cluster: str | None) -> Access:
    """Cut a user's rights to the scope of the request's token."""
    reads_metrics = access.sees_everything and not scope.namespaces and scope.reaches(cluster)
    if scope.is_whole:
        return replace(access, reads_metrics=reads_metrics)
    if not scope.reaches(cluster):
        return Access(access.username, scope=scope)
    roles = {**access.roles, _ALL: frozenset({Role.ADMIN})} if access.is_superuser else access.roles
    cohorts = access.cohorts if scope.level == TokenScope.ADMINISTER and not scope.namespaces else frozenset[str]()
    return Access(access.username, False, scope.roles(roles), cohorts, scope, reads_metrics)


def clusters_of(user: AbstractBaseUser | AnonymousUser) -> QuerySet[Cluster]:
    """Return the clusters in which the user has any role."""
    reached = scope_of(user).clusters
    found = Cluster.objects.filter(name__in=reached) if reached else Cluster.objects.all()
    if isinstance(user, User) and user.is_active and user.is_superuser:
        return found
    bindings = bindings_of(user)
    if bindings.filter(cluster=None).exists():
        return found
    return found.filter(pk__in=bindings.values("cluster"))


def forget_bindings(sender: Any, instance: AbstractBaseUser, **_: Any) -> None:
    """Receiver of `post_delete` of users: delete their bindings, so that a new user of the same name starts without
    rights."""
    RoleBinding.objects.filter(username=instance.get_username()).delete()


def require_all(access: Access, verb: Verb, objects: Iterable[tuple[str, str]]) -> None:
    """Check `Access.require` for many (kind, namespace) pairs, each once."""
    for kind, namespace in sorted(set(objects)):
        access.require(verb, kind, namespace)
