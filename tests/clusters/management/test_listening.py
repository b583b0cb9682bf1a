"""Where the webhook and the visibility API listen, and with which TLS: as the Configuration of the cluster says."""

from __future__ import annotations

import socket
from datetime import UTC, datetime
from ssl import TLSVersion
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from clusters.jobs.framework.store import ObjectStore
from clusters.jobs.integrations import job_context
from clusters.webhook.admission import Admission
from clusters.webhook.application import WebhookApplication
from clusters.webhook.certificates import renewed
from clusters.webhook.server import Served, WebhookServer
from simulation.server import listen
from tests.clusters.webhook.served import HOST, FixedSurroundings
from tests.factories import make_cluster

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("command", "block"), [("webhook", {"webhook": "port"}), ("visibility", {"visibilityServer": "bindPort"})]
)
def test_a_server_listens_at_the_port_of_the_configuration(command: str, block: dict[str, str]) -> None:
    """The port is in use, which whoever listens there is told."""
    [(name, field)] = block.items()
    with socket.create_server(("0.0.0.0", 0)) as taken:
        make_cluster(configuration={name: {field: taken.getsockname()[1]}})
        with pytest.raises(CommandError, match="Address already in use"):
            call_command(command)


def test_without_certificates_of_its_own_the_webhook_needs_one_that_is_given() -> None:
    make_cluster(configuration={"internalCertManagement": {"enable": False}})
    with pytest.raises(CommandError, match="--certificate: Required value"):
        call_command("webhook")


@pytest.mark.parametrize(
    ("tls", "version", "ciphers"),
    [
        ({"minVersion": "VersionTLS13"}, TLSVersion.TLSv1_3, None),
        (
            {"minVersion": "VersionTLS12", "cipherSuites": ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"]},
            TLSVersion.TLSv1_2,
            {"ECDHE-RSA-AES128-GCM-SHA256"},
        ),
    ],
)
def test_servers_offer_the_tls_of_the_configuration(
    tls: dict[str, Any], version: TLSVersion, ciphers: set[str] | None
) -> None:
    made = renewed(None, [HOST], datetime.now(UTC))
    served = Served(made.certificate, made.key, made.authorities)
    application = WebhookApplication(Admission(FixedSurroundings(job_context({}, ObjectStore([])))))
    with listen(HOST, 0) as listening:
        server = WebhookServer(application, listening, lambda: served, None, tls={"tls": tls})
        assert server._context.minimum_version == version
        old = {each["name"] for each in server._context.get_ciphers() if each["protocol"] == "TLSv1.2"}
        assert ciphers is None or old == ciphers
