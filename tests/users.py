"""Alice, Bob and Charlie: a cluster admin, a submitter of team-a and one of team-b; and Vera, who may look at all."""

from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import User

from accounts.models import Cluster, Namespace, Role, RoleBinding
from tests.api_client import SchemaClient

EPOCH = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
ROLES = {
    "alice": (Role.ADMIN, ""),
    "bob": (Role.SUBMITTER, "team-a"),
    "charlie": (Role.SUBMITTER, "team-b"),
    "vera": (Role.VIEWER, ""),
}


def make_user(name: str) -> User:
    """A user with the role of that name, if it has one."""
    user = User.objects.create_user(name, password=f"{name}-secret")
    if name in ROLES:
        role, namespace = ROLES[name]
        RoleBinding.objects.create(name=f"{name}-binding", username=name, role=role, namespace=namespace)
    return user


def client_of(user: User) -> SchemaClient:
    """A client that is logged in as the user."""
    client = SchemaClient()
    client.force_authenticate(user)
    return client


@pytest.fixture
def cluster(db: None) -> Cluster:
    """The cluster `default` with the namespaces team-a and team-b."""
    cluster = Cluster.objects.create(name="default")
    for name in ("team-a", "team-b"):
        Namespace.objects.create(cluster=cluster, name=name, created_at=EPOCH)
    return cluster


@pytest.fixture
def alice(cluster: Cluster) -> SchemaClient:
    """A cluster admin."""
    return client_of(make_user("alice"))


@pytest.fixture
def bob(cluster: Cluster) -> SchemaClient:
    """A submitter of team-a."""
    return client_of(make_user("bob"))


@pytest.fixture
def charlie(cluster: Cluster) -> SchemaClient:
    """A submitter of team-b."""
    return client_of(make_user("charlie"))


@pytest.fixture
def vera(cluster: Cluster) -> SchemaClient:
    """Sees everything and changes nothing."""
    return client_of(make_user("vera"))


@pytest.fixture
def nobody(cluster: Cluster) -> SchemaClient:
    """Logged in, without any role."""
    return client_of(make_user("nobody"))
