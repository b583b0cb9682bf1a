"""A namespace that the cluster lacks is made there; whether the cluster has it is known as far as it can be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from accounts.models import Namespace
from clusters.api_errors import ClusterError, ClusterUnreachable
from clusters.api_objects import JsonObject, Kind
from clusters.client import ClusterClient
from clusters.push.namespaces import make_namespace
from tests.factories import make_cluster

pytestmark = pytest.mark.django_db


class FailingClient(ClusterClient):
    """A client of a cluster that has no namespace and answers each creation with an error."""

    def __init__(self, error: ClusterError) -> None:
        self._error = error

    def get(self, kind: Kind, namespace: str, name: str) -> JsonObject | None:
        return None

    def create(self, kind: Kind, item: Mapping[str, Any], *, dry_run: bool = False) -> JsonObject:
        raise self._error


@pytest.mark.parametrize(
    ("error", "may_exist"),
    [
        (ClusterError(403, "Forbidden", "no right"), False),
        (ClusterError(422, "Invalid", "metadata.labels"), False),
        (ClusterError(429, "TooManyRequests", "later"), False),
        (ClusterError(409, "AlreadyExists", "another client was first"), True),
        (ClusterError(504, "Timeout", "no answer in time"), True),
        (ClusterError(500, "InternalError", "etcd"), True),
        (ClusterUnreachable("broken pipe"), True),
    ],
)
def test_a_namespace_that_may_have_been_made_counts_as_the_clusters(error: ClusterError, may_exist: bool) -> None:
    cluster = make_cluster()
    row = Namespace.objects.get(cluster=cluster, name="team")
    with pytest.raises(ClusterError):
        make_namespace(cluster, FailingClient(error), "team")
    row.refresh_from_db()
    assert row.in_cluster is may_exist
