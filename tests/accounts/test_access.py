"""Roles: what each may see and do, in its namespaces and outside."""

import pytest
from django.contrib.auth.models import AnonymousUser, User

from accounts.models import Role, RoleBinding
from accounts.services.access import Access, access_of, require_all
from foundation.exceptions import NotPermitted


def only(role: Role) -> frozenset[Role]:
    return frozenset({role})


SUBMITTER = Access("charlie", roles={"team-a": only(Role.SUBMITTER), "team-b": only(Role.VIEWER)})
NAMESPACE_ADMIN = Access("dora", roles={"team-a": only(Role.ADMIN)})
CLUSTER_ADMIN = Access("alice", roles={"": only(Role.ADMIN)})
VIEWER = Access("bob", roles={"": only(Role.VIEWER)})
AUDITOR = Access("tom", roles={"": only(Role.AUDITOR)})
QUEUE_ADMIN = Access("quentin", cohorts=frozenset({"research"}))


@pytest.mark.parametrize(
    ("access", "verb", "kind", "namespace", "allowed"),
    [
        (SUBMITTER, "submit", "Workload", "team-a", True),
        (SUBMITTER, "submit", "Deployment", "team-a", True),
        (SUBMITTER, "submit", "Workload", "team-b", False),
        (SUBMITTER, "submit", "Workload", "team-c", False),
        (SUBMITTER, "submit", "LocalQueue", "team-a", False),
        (SUBMITTER, "submit", "ClusterQueue", "", False),
        (SUBMITTER, "submit", "Workload", "", False),
        (SUBMITTER, "protect", "Workload", "team-a", False),
        (SUBMITTER, "view", "Workload", "team-b", True),
        (SUBMITTER, "view", "LocalQueue", "team-a", True),
        (SUBMITTER, "view", "Workload", "team-c", False),
        (SUBMITTER, "view", "ResourceFlavor", "", True),
        (SUBMITTER, "view", "ClusterQueue", "", False),
        (NAMESPACE_ADMIN, "protect", "Workload", "team-a", True),
        (NAMESPACE_ADMIN, "submit", "LocalQueue", "team-a", False),
        (CLUSTER_ADMIN, "submit", "ClusterQueue", "", True),
        (CLUSTER_ADMIN, "submit", "Workload", "anywhere", True),
        (VIEWER, "view", "ClusterQueue", "", True),
        (VIEWER, "view", "Workload", "team-c", True),
        (VIEWER, "submit", "Workload", "team-a", False),
        (VIEWER, "audit", "AuditRecord", "", False),
        (VIEWER, "view", "RoleBinding", "", False),
        (AUDITOR, "audit", "AuditRecord", "", True),
        (AUDITOR, "view", "RoleBinding", "", True),
        (AUDITOR, "submit", "RoleBinding", "", False),
        (AUDITOR, "submit", "Workload", "team-a", False),
        (QUEUE_ADMIN, "view", "ClusterQueue", "", True),
        (QUEUE_ADMIN, "view", "ResourceFlavor", "", True),
        (QUEUE_ADMIN, "view", "Workload", "team-a", False),
        (QUEUE_ADMIN, "submit", "Workload", "team-a", False),
        (Access("nobody"), "view", "ResourceFlavor", "", False),
    ],
)
def test_what_a_role_allows(access: Access, verb: str, kind: str, namespace: str, allowed: bool) -> None:
    assert access.may(verb, kind, namespace) is allowed  # type: ignore[arg-type]  # the table holds plain words


def test_says_which_role_is_missing() -> None:
    with pytest.raises(
        NotPermitted,
        match="charlie may not submit a ClusterQueue: this requires the role admin in all namespaces, or queue-admin",
    ):
        SUBMITTER.require("submit", "ClusterQueue")
    with pytest.raises(NotPermitted, match="in namespace team-b: this requires the role submitter there"):
        require_all(SUBMITTER, "submit", [("Job", "team-a"), ("Workload", "team-b")])


@pytest.mark.django_db
def test_reads_bindings() -> None:
    user = User.objects.create_user("charlie")
    RoleBinding.objects.create(username=user.username, role=Role.SUBMITTER, namespace="team-a")
    assert access_of(user).may("submit", "Workload", "team-a")
    assert access_of(user).visible_namespaces() == frozenset({"team-a"})
    assert access_of(User.objects.create_superuser("root")).visible_namespaces() is None
    assert not access_of(AnonymousUser()).has_any_role
    user.is_active = False
    assert not access_of(user).has_any_role
