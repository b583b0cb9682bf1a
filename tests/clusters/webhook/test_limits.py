"""What one caller of the webhook may take: time, connections and memory; and whose certificate it must show."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3
from cryptography.hazmat.primitives import serialization

from clusters.jobs.reading import NO_CLUSTER
from clusters.webhook.admission import VALIDATE_JOBS, Admission
from clusters.webhook.application import WebhookApplication
from clusters.webhook.server import MAX_CONNECTIONS_PER_ADDRESS
from foundation.serving.bodies import BodyReader, Message, Receive
from tests.clusters.webhook.served import HOST, FixedSurroundings, ServedWebhook
from tests.clusters.webhook.test_visibility import signed, write_pair
from tests.patience import PATIENCE_SECONDS

Answer = tuple[int, bytes]


def application(**limits: Any) -> WebhookApplication:
    reader = BodyReader(**{"max_bytes": 1000, "max_held_bytes": 1500, "max_unknown_bytes": 1000, **limits})
    return WebhookApplication(Admission(FixedSurroundings(NO_CLUSTER)), bodies=reader)


def sends(*parts: bytes, more: bool = True) -> Receive:
    """A caller that sends these, and then nothing more forever."""
    left = list(parts)

    async def receive() -> Message:
        if not left:
            await asyncio.Event().wait()
        return {"type": "http.request", "body": left.pop(0), "more_body": more or bool(left)}

    return receive


async def ask(asked: WebhookApplication, receive: Receive, address: str = "10.0.0.1") -> Answer:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "path": VALIDATE_JOBS, "method": "POST", "headers": [], "client": (address, 1)}
    await asked(scope, receive, send)
    return sent[0]["status"], sent[1]["body"]


async def test_a_review_that_does_not_come_is_not_waited_for() -> None:
    status, said = await ask(application(first_seconds=0.05), sends(b"{"))
    assert (status, said) == (408, b"The body of the request arrived too slowly.")


async def test_a_review_beyond_the_limit_is_refused_before_it_is_whole() -> None:
    assert (await ask(application(), sends(b"x" * 600, b"x" * 600)))[0] == 413


async def test_reviews_under_way_have_a_limit_together_and_by_address() -> None:
    tried = application(first_seconds=30, max_held_by_address=1000)
    held = [asyncio.create_task(ask(tried, sends(b" " * 700), "10.0.0.9")) for _ in range(1)]
    await asyncio.sleep(0)
    assert (await ask(tried, sends(b" " * 400, more=False), "10.0.0.9"))[0] == 503, "its address holds enough"
    assert (await ask(tried, sends(b" " * 400, more=False), "10.0.0.1"))[0] == 400, "the API server is answered"
    assert (await ask(tried, sends(b" " * 900), "10.0.0.2"))[0] == 503, "all together hold enough"
    for task in held:
        task.cancel()


@pytest.fixture
def webhook() -> Iterator[ServedWebhook]:
    with ServedWebhook(FixedSurroundings(NO_CLUSTER)) as found:
        yield found


def test_an_address_has_so_many_connections_and_no_more(webhook: ServedWebhook) -> None:
    context = ssl.create_default_context(cadata=webhook.certificates.authorities.decode())

    def connect() -> ssl.SSLSocket:
        return context.wrap_socket(
            socket.create_connection((HOST, webhook.port), timeout=PATIENCE_SECONDS), server_hostname=HOST
        )

    held = [connect() for _ in range(MAX_CONNECTIONS_PER_ADDRESS)]
    refused = connect()
    assert refused.recv(100).startswith(b"HTTP/1.1 429")
    for each in (refused, *held):
        each.close()


def test_where_callers_are_named_nobody_else_gets_a_connection(tmp_path: Path) -> None:
    authority = signed("callers")
    trusted = authority[0].public_bytes(serialization.Encoding.PEM)
    api_server = write_pair(tmp_path, "api-server", signed("kube-apiserver", authority))
    stranger = write_pair(tmp_path, "stranger", signed("kube-apiserver", signed("callers")))
    with ServedWebhook(FixedSurroundings(NO_CLUSTER), callers=trusted) as served:
        assert _asks(served, None) is None
        assert _asks(served, stranger) is None
        assert _asks(served, api_server) == 200


def _asks(served: ServedWebhook, pair: tuple[str, str] | None) -> int | None:
    """The answer to a caller with this certificate; None where it got none."""
    context = ssl.create_default_context(cadata=served.certificates.authorities.decode())
    if pair is not None:
        context.load_cert_chain(*pair)
    with urllib3.PoolManager(ssl_context=context, retries=False, timeout=PATIENCE_SECONDS) as pool:
        try:
            return int(pool.request("GET", f"{served.url}/healthz").status)
        except urllib3.exceptions.HTTPError:
            return None
