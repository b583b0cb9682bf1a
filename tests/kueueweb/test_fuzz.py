"""Whatever is sent, the answer is never a server error, and always one that the schema knows: the client checks."""

import re
from typing import Any, Final
from urllib.parse import urlencode

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accounts.models import Cluster
from tests.api_client import SchemaClient, schema
from tests.factories import make_cluster_queue
from tests.users import client_of, make_user

METHODS: Final = ("get", "post", "put", "patch", "delete")
NAMES: Final = ("team-a", "queue-0", "w", "clusterqueue", "x" * 300, "a b", "ü", "%00", "..", "-1")

OPERATIONS: Final = [
    (path, method)
    for path, operations in sorted(schema()["paths"].items())
    for method in METHODS
    if method in operations and "/auth/" not in path
]

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(allow_nan=False, allow_infinity=False), st.text()
)
names = st.one_of(
    st.sampled_from(["namespace", "name", "metadata", "kind", "apiVersion", "spec", "labels", "template", "state"]),
    st.sampled_from(["pod_sets", "requests", "cpu", "count", "priority", "priority_class", "topology_request"]),
    st.sampled_from(
        ["cohort", "resource_groups", "flavors", "nominal_quota", "preemption", "fair_weight", "workloads"]
    ),
)
bodies = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.one_of(names, st.text(max_size=8)), inner, max_size=6)
    ),
    max_leaves=12,
)
values = st.one_of(
    st.text(max_size=20), st.sampled_from(["0", "-1", "1", "true", "9" * 30, "position", "bm90", "WzFd"])
)


def _json(body: Any) -> bytes:
    try:
        return orjson.dumps(body)
    except TypeError:  # integers beyond 64 bits, lone surrogates: not JSON to begin with
        return repr(body).encode("utf-8", "replace")


@pytest.fixture
def admin(cluster: Cluster) -> SchemaClient:
    make_cluster_queue(cluster, "queue-0")
    return client_of(make_user("alice"))


@pytest.fixture
def cluster(db: None) -> Cluster:
    return Cluster.objects.create(name="default")


@pytest.mark.parametrize(("path", "method"), OPERATIONS, ids=lambda value: str(value))
def test_never_a_server_error(admin: SchemaClient, path: str, method: str) -> None:
    known = [parameter["name"] for parameter in schema()["paths"][path][method].get("parameters", [])]
    query = st.dictionaries(st.sampled_from([*known, "cluster"]), values, max_size=3)

    @settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(
        st.lists(st.sampled_from(NAMES), min_size=4, max_size=4),
        query,
        st.one_of(bodies.map(_json), st.binary(max_size=40)),
        st.sampled_from(["application/json", "application/yaml"]),
    )
    def send(parts: list[str], parameters: dict[str, str], body: bytes, content_type: str) -> None:
        remaining = iter(parts)
        address = re.sub(r"\{\w+\}", lambda _: next(remaining).replace(" ", "%20").replace("ü", "%C3%BC"), path)
        url = f"{address}?{urlencode({name: text for name, text in parameters.items() if name not in address})}"
        send_it: Any = admin.generic  # its stubs want text where it takes bytes
        response = send_it(method.upper(), url, body, content_type=content_type)
        assert response.status_code < 500, (method, url, body, response.content)

    send()
