"""Users' own templates of manifests."""

from typing import Any, Final

import pytest
from django.contrib.auth.models import User

from accounts.models import AuditRecord, Cluster, ManifestTemplate
from accounts.models.manifest_template import MAX_MANIFEST
from accounts.services.own_objects import MANIFEST_TEMPLATES
from tests.api_client import SchemaClient
from tests.users import client_of, make_user

pytestmark = pytest.mark.django_db

URL: Final = "/api/v1/manifest-templates/"
MANIFEST: Final = "\n# Two pods.\nkind: Job\n"
"""A template keeps spaces and comments as its author wrote them."""


@pytest.fixture
def bob(cluster: Cluster) -> SchemaClient:
    return client_of(make_user("bob"))


def saved(client: SchemaClient, name: str = "nightly") -> dict[str, Any]:
    response = client.post(URL, {"name": name, "manifest": MANIFEST}, format="json")
    assert response.status_code == 201, response.content
    row: dict[str, Any] = response.json()
    return row


def test_a_template_is_saved_listed_changed_and_deleted(bob: SchemaClient) -> None:
    row = saved(bob)
    saved(bob, "another")
    found = bob.get(URL).json()["results"]
    assert [(each["name"], each["manifest"]) for each in found] == [("another", MANIFEST), ("nightly", MANIFEST)]
    address = f"{URL}{row['id']}/"
    changed = bob.patch(address, {"manifest": "kind: Pod"}, format="json", headers={"If-Match": '"1"'})
    assert (changed.json()["manifest"], changed.headers["ETag"]) == ("kind: Pod", '"2"')
    stale = bob.delete(address, headers={"If-Match": '"1"'})
    assert (stale.status_code, stale.json()["current"]["manifest"]) == (412, "kind: Pod")
    assert bob.delete(address).status_code == 204
    assert bob.get(address).json()["message"] == f"You have no manifest template {row['id']}."
    recorded = AuditRecord.objects.filter(kind="ManifestTemplate").order_by("id").values_list("verb", "name")
    assert list(recorded) == [
        ("create", "nightly"),
        ("create", "another"),
        ("update", "nightly"),
        ("delete", "nightly"),
    ]


def test_templates_of_others_are_neither_shown_nor_changed(bob: SchemaClient) -> None:
    address = f"{URL}{saved(bob)['id']}/"
    for client in (client_of(make_user("charlie")), client_of(make_user("alice"))):
        assert client.get(URL).json()["results"] == []
        assert client.get(address).status_code == 404
        assert client.patch(address, {"name": "hers"}, format="json").status_code == 404
        assert client.delete(address).status_code == 404
    assert ManifestTemplate.objects.get().name == "nightly"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "x" * 61}, "name"),
        ({"manifest": ""}, "manifest"),
        ({"manifest": "x" * (MAX_MANIFEST + 1)}, "manifest"),
        ({"manifest": {"kind": "Job"}}, "manifest"),
    ],
)
def test_names_and_manifests_are_bounded(bob: SchemaClient, change: dict[str, Any], field: str) -> None:
    refused = bob.post(URL, {"name": "nightly", "manifest": MANIFEST} | change, format="json")
    assert (refused.status_code, refused.json()["errors"][0]["path"]) == (400, field)


def test_a_name_is_used_once_and_the_number_is_limited(bob: SchemaClient) -> None:
    saved(bob)
    taken = bob.post(URL, {"name": "nightly", "manifest": "kind: Pod"}, format="json")
    assert (taken.status_code, taken.json()["reason"]) == (409, "AlreadyExists")
    user = User.objects.get(username="bob")
    ManifestTemplate.objects.bulk_create(
        ManifestTemplate(user=user, name=f"t{number}", manifest=MANIFEST)
        for number in range(MANIFEST_TEMPLATES.maximum - 1)
    )
    full = bob.post(URL, {"name": "one more", "manifest": MANIFEST}, format="json")
    assert (full.status_code, full.json()["reason"]) == (429, "LimitReached")
