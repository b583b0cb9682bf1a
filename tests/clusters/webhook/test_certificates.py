"""Certificates of the webhook: made, checked by whoever trusts the authority, renewed in time, shared by replicas."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import urllib3
from cryptography import x509
from django.db import OperationalError

from clusters.client import TokenBucket
from clusters.client_credentials import connect
from clusters.jobs.reading import NO_CLUSTER
from clusters.webhook.certificate_store import CertificateStore
from clusters.webhook.certificates import Certificates, renewed
from clusters.webhook.configurations import Target
from clusters.webhook.server import Registration, given
from tests.clusters.webhook.served import HOST, FixedSurroundings, ServedWebhook, checking_pool
from tests.patience import PATIENCE_SECONDS
from tests.simulated_cluster import ServerThread, make_simulated

NOW = datetime(2026, 6, 1, tzinfo=UTC)
NAMES = ["webhook.kueueweb.svc"]


def certificate_of(certificates: Certificates) -> x509.Certificate:
    return x509.load_pem_x509_certificate(certificates.certificate)


def authorities_of(certificates: Certificates) -> list[x509.Certificate]:
    return x509.load_pem_x509_certificates(certificates.authorities)


def test_a_certificate_is_renewed_thirty_days_before_its_end_by_the_same_authority() -> None:
    first = renewed(None, NAMES, NOW)
    assert renewed(first, NAMES, NOW + timedelta(days=59)) is first
    second = renewed(first, NAMES, NOW + timedelta(days=61))
    assert second.authorities == first.authorities
    assert second.key != first.key
    certificate_of(second).verify_directly_issued_by(authorities_of(first)[0])
    assert certificate_of(second).not_valid_after_utc > NOW + timedelta(days=90)


def test_a_certificate_with_other_names_is_replaced() -> None:
    first = renewed(None, NAMES, NOW)
    second = renewed(first, ["other.kueueweb.svc", "10.0.0.1"], NOW)
    names = certificate_of(second).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert {str(each.value) for each in names} == {"other.kueueweb.svc", "10.0.0.1"}


def test_an_authority_is_replaced_a_year_before_its_end_and_trusted_until_then() -> None:
    first = renewed(None, NAMES, NOW)
    later = NOW + timedelta(days=4 * 365 + 10)
    second = renewed(first, NAMES, later)
    assert len(authorities_of(second)) == 2
    assert authorities_of(second)[1] == authorities_of(first)[0]
    certificate_of(second).verify_directly_issued_by(authorities_of(second)[0])
    third = renewed(second, NAMES, later + timedelta(days=4 * 365 + 10))
    assert authorities_of(first)[0] not in authorities_of(third)


def test_replicas_that_start_together_serve_one_certificate() -> None:
    with ServerThread(make_simulated()) as server:
        stores = [
            CertificateStore(connect(server.url, TokenBucket(1e4, 1e4)), "default", "certs", NAMES, lambda: NOW)
            for _ in range(4)
        ]
        found: list[Certificates] = []
        threads = [threading.Thread(target=lambda store=store: found.append(store.current())) for store in stores]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 4
        assert len(set(found)) == 1
        assert stores[0].current() == found[0]


def test_a_client_without_the_authority_rejects_the_webhook() -> None:
    with ServedWebhook(FixedSurroundings(NO_CLUSTER)) as webhook:
        stranger = checking_pool(renewed(None, [HOST], datetime.now(UTC)).authorities)
        with pytest.raises(urllib3.exceptions.SSLError, match="CERTIFICATE_VERIFY_FAILED"):
            stranger.request("GET", f"{webhook.url}/healthz")
        plain = urllib3.PoolManager(retries=False, timeout=PATIENCE_SECONDS)
        with pytest.raises(urllib3.exceptions.ProtocolError):
            plain.request("GET", f"http://{HOST}:{webhook.port}/healthz")


def test_a_renewed_certificate_is_served_without_a_pause() -> None:
    with ServedWebhook(FixedSurroundings(NO_CLUSTER)) as webhook:
        before = ssl.get_server_certificate((HOST, webhook.port))
        kept = checking_pool(webhook.certificates.authorities)
        assert kept.request("GET", f"{webhook.url}/healthz").data == b"ok"
        webhook.certificates = renewed(webhook.certificates, [HOST], datetime.now(UTC) + timedelta(days=70))
        webhook.server.refresh()
        assert kept.request("GET", f"{webhook.url}/readyz").status == 200, "the connection goes on"
        after = ssl.get_server_certificate((HOST, webhook.port))
        kept.clear()
        assert before.encode().strip() != after.encode().strip() == webhook.certificates.certificate.strip()


def test_given_certificates_are_read_again_when_their_owner_renews_them(tmp_path: Path) -> None:
    def write(certificates: Certificates) -> Sequence[Path]:
        paths = [tmp_path / name for name in ("tls.crt", "tls.key", "ca.crt")]
        for path, content in zip(
            paths, (certificates.certificate, certificates.key, certificates.authorities), strict=True
        ):
            path.write_bytes(content)
        return paths

    first, second = renewed(None, NAMES, NOW), renewed(None, NAMES, NOW)
    current = given(*write(first))
    assert (current().certificate, current().authorities) == (first.certificate, first.authorities)
    write(second)
    assert current().key == second.key


def test_the_keeper_lives_through_a_database_that_goes_away() -> None:
    """Without it no certificate is renewed any more, and nobody notices until the last one ends."""
    asked = threading.Event()

    def observes_only() -> bool:
        asked.set()
        raise OperationalError("server closed the connection unexpectedly")

    client = connect("http://127.0.0.1:1", TokenBucket(1, 1))
    registration = Registration(client, Target(url=f"https://{HOST}"), observes_only)
    with ServedWebhook(FixedSurroundings(NO_CLUSTER), registration):
        assert asked.wait(PATIENCE_SECONDS)
        [keeper] = [thread for thread in threading.enumerate() if thread.name == "webhook-keeper"]
        keeper.join(0.5)
        assert keeper.is_alive()
