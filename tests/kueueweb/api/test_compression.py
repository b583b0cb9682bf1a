"""Answers and assets are compressed, in the demo too."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.contrib.staticfiles import finders
from django.test import Client, override_settings
from rest_framework.test import APIClient

from accounts.models import Cluster, Namespace
from tests.api_client import SchemaClient
from tests.factories import make_cluster_queue
from tests.users import EPOCH

ACCEPT = {"Accept-Encoding": "gzip, br"}


@pytest.fixture
def namespaces(cluster: Cluster) -> int:
    rows = [Namespace(cluster=cluster, name=f"team-{number:03}", created_at=EPOCH) for number in range(200)]
    return len(Namespace.objects.bulk_create(rows)) + 2


def test_lists_are_compressed_for_those_who_take_it(alice: SchemaClient, namespaces: int) -> None:
    plain = alice.get("/api/v1/namespaces/?limit=1000")
    assert "Content-Encoding" not in plain.headers
    raw = APIClient()  # the client of the schema reads bodies as text
    raw.force_authenticate(User.objects.get(username="alice"))
    packed = raw.get("/api/v1/namespaces/?limit=1000", headers=ACCEPT)
    assert packed.headers["Content-Encoding"] == "gzip"
    assert len(packed.content) < len(plain.content) / 4
    assert json.loads(gzip.decompress(packed.content)) == plain.json()
    assert "Accept-Encoding" in packed.headers["Vary"]


def test_what_has_an_etag_keeps_it_strong(alice: SchemaClient, cluster: Cluster) -> None:
    make_cluster_queue(cluster, "queue")
    answer = alice.get("/api/v1/cluster-queues/queue/", headers=ACCEPT)
    assert "Content-Encoding" not in answer.headers
    assert answer.headers["ETag"].startswith('"')


def test_the_length_of_what_is_secret_tells_nothing(alice: SchemaClient, cluster: Cluster) -> None:
    answer = alice.get("/api/v1/auth/tokens/", headers=ACCEPT)
    assert "Content-Encoding" not in answer.headers


def test_assets_lie_beside_their_compressed_twins_and_are_sent_so(tmp_path: Path) -> None:
    script = b"export const text = 'again and again';" * 100
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "page-0a1b2c3d.js").write_bytes(script)
    (tmp_path / "assets" / "page-0a1b2c3d.js.gz").write_bytes(gzip.compress(script))
    finders.get_finder.cache_clear()  # type: ignore[attr-defined]  # it is an lru_cache
    with override_settings(STATICFILES_DIRS=[tmp_path], WHITENOISE_USE_FINDERS=True, DEBUG=False):
        answer = Client().get("/static/assets/page-0a1b2c3d.js", headers=ACCEPT)
        assert answer.headers["Content-Encoding"] == "gzip"
        assert gzip.decompress(b"".join(answer)) == script
    finders.get_finder.cache_clear()  # type: ignore[attr-defined]  # it is an lru_cache
