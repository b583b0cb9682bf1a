"""`reports/` and `prices/` over REST: who may, what is refused, and CSV."""

from __future__ import annotations

from typing import Any

import pytest

from accounts.models import Cluster
from history.models import Price
from tests.api_client import SchemaClient

PRICES = {"currency": "EUR", "prices": [{"flavor": "a100", "resource": "device", "per_hour": "2.50"}]}
KINDS = ("waits", "usage", "idle", "preemptions", "loops", "fairness")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("who", ["alice", "bob", "charlie", "vera"])
def test_everybody_with_a_role_has_reports(kind: str, who: str, request: pytest.FixtureRequest) -> None:
    client: SchemaClient = request.getfixturevalue(who)
    answer = client.get(f"/api/v1/reports/{kind}/")
    assert answer.status_code == 200
    assert answer.json()["rows"] == []
    text = client.get(f"/api/v1/reports/{kind}/", {"format": "csv"})
    assert text.headers["Content-Type"].startswith("text/csv")
    assert f'filename="{kind}-' in text.headers["Content-Disposition"]
    assert text.content.decode().count("\r\n") == 1


def test_not_for_those_without_a_role(nobody: SchemaClient, cluster: Cluster) -> None:
    for client, status in ((nobody, 403), (SchemaClient(), 401)):
        assert client.get("/api/v1/reports/waits/").status_code == status
        assert client.get("/api/v1/prices/").status_code == status
        assert client.put("/api/v1/prices/", PRICES).status_code == status


@pytest.mark.parametrize(
    ("path", "query", "status", "says"),
    [
        ("nothing", {}, 404, "There is no Report nothing"),
        ("waits", {"by": "moon"}, 400, "Unsupported value 'moon'"),
        ("idle", {"by": "user"}, 400, "supported values are none"),
        ("waits", {"since": "2100-01-01T00:00:00Z"}, 400, "is not before"),
        ("waits", {"since": "2001-01-01T00:00:00Z"}, 400, "more than 400 days"),
        ("waits", {"format": "pdf"}, 400, "pdf"),
    ],
)
def test_what_is_refused_is_named(
    alice: SchemaClient, path: str, query: dict[str, Any], status: int, says: str
) -> None:
    answer = alice.get(f"/api/v1/reports/{path}/", query)
    assert answer.status_code == status
    assert says in answer.content.decode()


@pytest.mark.parametrize(("who", "status"), [("alice", 200), ("bob", 403), ("charlie", 403), ("vera", 403)])
def test_only_a_cluster_admin_sets_prices(who: str, status: int, request: pytest.FixtureRequest) -> None:
    client: SchemaClient = request.getfixturevalue(who)
    assert client.put("/api/v1/prices/", PRICES).status_code == status
    assert client.get("/api/v1/prices/").status_code == 200
    assert Price.objects.count() == (status == 200)


def test_two_who_edit_prices_do_not_overwrite_each_other(alice: SchemaClient) -> None:
    tag = alice.get("/api/v1/prices/").headers["ETag"]
    first = alice.put("/api/v1/prices/", PRICES, headers={"If-Match": tag})
    assert first.status_code == 200
    assert first.json()["prices"][0]["per_hour"] == "2.500000"
    assert alice.put("/api/v1/prices/", PRICES, headers={"If-Match": tag}).status_code == 412
    assert alice.put("/api/v1/prices/", PRICES, headers={"If-Match": first.headers["ETag"]}).status_code == 200


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"currency": "", "prices": PRICES["prices"]}, "Required value"),
        ({"currency": "euro", "prices": []}, "currency"),
        ({"currency": "EUR", "prices": [*PRICES["prices"], *PRICES["prices"]]}, "Duplicate value"),
        ({"currency": "EUR", "prices": [{"resource": "cpu", "per_hour": "-1"}]}, "per_hour"),
        ({"currency": "EUR"}, "prices"),
        ([], "JSON object"),
    ],
)
def test_prices_that_cannot_be(alice: SchemaClient, body: Any, says: str) -> None:
    answer = alice.put("/api/v1/prices/", body)
    assert answer.status_code == 400
    assert says in answer.content.decode()
