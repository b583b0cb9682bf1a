"""Whatever is sent, the answer is never a server error, and always one that the schema knows: the client checks.

`make fuzz` sends some twenty times as much: more than 10,000 requests, manifests and cursors.
"""

import base64
import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import orjson
import pytest
import yaml
from django.db import transaction
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from accounts.models import Cluster
from tests.api_client import SchemaClient, schema
from tests.factories import make_cluster_queue
from tests.users import client_of, make_user

LATEST: Final = "9999-12-31T23:59:59.999999+23:59"
METHODS: Final = ("get", "post", "put", "patch", "delete")
NAMES: Final = ("team-a", "queue-0", "w", "clusterqueue", "x" * 300, "a b", "ü", "%00", "..", "-1")

EXAMPLES: Final = settings.get_profile(settings.get_current_profile_name()).max_examples
FEW: Final = max(1, EXAMPLES // 16)
MANY: Final = 4 * EXAMPLES
SETTINGS: Final[dict[str, Any]] = {
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
    "database": None,
}

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


def _parameters(path: str, method: str) -> list[str]:
    return [parameter["name"] for parameter in schema()["paths"][path][method].get("parameters", [])]


@pytest.fixture
def admin(cluster: Cluster) -> SchemaClient:
    make_cluster_queue(cluster, "queue-0")
    return client_of(make_user("alice"))


@pytest.fixture
def cluster(db: None) -> Cluster:
    return Cluster.objects.create(name="default")


@pytest.mark.parametrize(("path", "method"), OPERATIONS, ids=lambda value: str(value))
def test_never_a_server_error(admin: SchemaClient, path: str, method: str) -> None:
    known = _parameters(path, method)
    query = st.dictionaries(st.sampled_from([*known, "cluster"]), values, max_size=3)

    @settings(max_examples=FEW, **SETTINGS)
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


SEEDS: Final = [
    document
    for path in sorted((Path(__file__).resolve().parents[1] / "manifests").rglob("*.yaml"))
    for document in yaml.safe_load_all(path.read_text(encoding="utf-8"))
    if isinstance(document, dict)
]
hostile = st.one_of(
    scalars,
    st.sampled_from(["", "\0", "9" * 26, "1e400", "-1", "999999999999999999999Gi", "0x10", "x" * 300_000, "\ud800"]),
    st.sampled_from([10**26, -(2**63) - 1, 2**64, 1e308, 2**31]),
    bodies,
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from _places(inner, (*path, key))


@st.composite
def mutated_manifests(draw: st.DrawFn) -> str:
    """An example with a few of its values replaced, removed or doubled."""
    document = copy.deepcopy(draw(st.sampled_from(SEEDS)))
    for _ in range(draw(st.integers(1, 3))):
        *parents, last = draw(st.sampled_from(list(_places(document)) or [("kind",)]))
        container: Any = document
        for step in parents:
            container = container[step]
        what = draw(st.sampled_from(["replace", "replace", "remove", "wrap"]))
        if what == "replace":
            container[last] = draw(hostile)
        elif what == "wrap":
            container[last] = [container.get(last) if isinstance(container, dict) else container[last]]
        elif isinstance(container, list) or last in container:
            del container[last]
    return yaml.safe_dump(document, allow_unicode=True)


def test_no_manifest_is_a_server_error(admin: SchemaClient) -> None:
    send_it: Any = admin.generic

    @settings(max_examples=MANY, **SETTINGS)
    @given(mutated_manifests(), st.booleans())
    def send(text: str, dry_run: bool) -> None:
        url = f"/api/v1/manifests/?dry_run={str(dry_run).lower()}"
        response = send_it("POST", url, text.encode("utf-8", "surrogatepass"), content_type="application/yaml")
        assert response.status_code < 500, (text[:5000], response.content[:2000])

    send()


def test_no_cursor_is_a_server_error(admin: SchemaClient) -> None:
    lists = [path for path, method in OPERATIONS if method == "get" and "after" in _parameters(path, method)]
    times = st.sampled_from(["2026-01-01T00:00:00Z", LATEST])
    keys = st.one_of(scalars, times, st.sampled_from(["\0", "1e400"]))

    @settings(max_examples=MANY, **SETTINGS)
    @given(st.sampled_from(lists), st.one_of(st.lists(keys, max_size=4), bodies))
    @example("/api/v1/decisions/", [LATEST, 1])
    @example("/api/v1/decisions/", [])
    def send(path: str, content: Any) -> None:
        cursor = base64.urlsafe_b64encode(_json(content)).decode().rstrip("=")
        with transaction.atomic():
            response = admin.get(re.sub(r"\{\w+\}", "team-a", path), {"after": cursor})
            transaction.set_rollback(True)  # a value that the database rejects spoils this request alone
        assert response.status_code < 500, (path, content, response.content[:2000])

    send()
