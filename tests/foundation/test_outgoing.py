"""What we send to addresses that somebody has written down reaches no metadata service."""

from __future__ import annotations

import socket
import threading
import time
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.error import HTTPError, URLError

import pytest

from foundation.outgoing import AddressNotAllowed, connect, is_allowed, open_url, plain_words, without_credentials
from tests.http_receiver import receiving, speaking
from tests.patience import PATIENCE_SECONDS


@pytest.fixture
def server() -> Iterator[tuple[int, list[tuple[str, str]]]]:
    """The port of a server on 127.0.0.1, and what it was asked: path and Host."""
    asked: list[tuple[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, self.headers["Host"]))
            self.send_response(302 if self.path == "/redirect" else 200)
            if self.path == "/redirect":
                self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as found:
        threading.Thread(target=found.serve_forever, daemon=True).start()
        yield found.server_port, asked
        found.shutdown()


@pytest.mark.parametrize(
    "address",
    [
        *("169.254.169.254", "169.254.170.2", "fe80::1", "fe80::1%eth0", "fd00:ec2::254", "100.100.100.200"),
        *("168.63.129.16", "192.0.0.192", "0.0.0.0", "::", "224.0.0.1", "::ffff:169.254.169.254"),
        *("64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1"),
    ],
)
def test_no_metadata_service_is_asked(address: str) -> None:
    assert not is_allowed(address)


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "10.1.2.3", "192.168.0.7", "93.184.216.34", "2606:2800::1", "fd12::1"]
)
def test_what_runs_in_the_cluster_and_beyond_is_asked(address: str) -> None:
    assert is_allowed(address)


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "10.1.2.3", "192.168.0.7", "fd12::1", "fec0::1", "100.64.0.1", "168.63.129.16"]
)
def test_what_any_user_writes_down_leads_to_no_private_network(address: str, settings: Any) -> None:
    assert not is_allowed(address, public_only=True)
    settings.OUTGOING_NETWORKS = [address]
    assert is_allowed(address, public_only=True)


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:2800::1"])
def test_what_any_user_writes_down_leads_to_the_internet(address: str) -> None:
    assert is_allowed(address, public_only=True)


def test_a_list_of_networks_decides_alone(settings: Any) -> None:
    settings.OUTGOING_NETWORKS = ["10.1.0.0/16", "fd12::/16"]
    assert [is_allowed(each) for each in ("10.1.2.3", "::ffff:10.1.2.3", "fd12::9")] == [True] * 3
    assert [is_allowed(each) for each in ("10.2.0.1", "127.0.0.1", "93.184.216.34", "fe80::1")] == [False] * 4


@pytest.mark.parametrize("host", ["169.254.169.254", "2852039166", "0xa9fea9fe", "[::ffff:169.254.169.254]"])
def test_however_it_is_written(host: str) -> None:
    with pytest.raises(URLError) as refused:
        open_url(f"http://{host}/latest/meta-data/", PATIENCE_SECONDS)
    assert isinstance(refused.value.reason, AddressNotAllowed)
    assert "OUTGOING_NETWORKS" in str(refused.value)


def test_the_address_that_was_looked_at_is_the_one_that_is_asked(server: tuple[int, list[tuple[str, str]]]) -> None:
    """DNS rebinding: a name that is harmless when it is looked at, and the metadata service when it is asked."""
    resolved: list[str] = []

    def rebound(host: str, port: int, *_: Any) -> list[tuple[Any, ...]]:
        resolved.append(host)
        addresses = ["169.254.169.254", "127.0.0.1"] if len(resolved) == 1 else ["169.254.169.254"]
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (address, port)) for address in addresses]

    with connect("rebinding.example.org", server[0], 2, rebound) as opened:
        assert opened.getpeername() == ("127.0.0.1", server[0])
    assert resolved == ["rebinding.example.org"]
    with pytest.raises(AddressNotAllowed, match=r"169\.254\.169\.254"):
        connect("rebinding.example.org", server[0], 2, rebound)


def test_a_request_keeps_its_host_and_follows_no_redirect(
    server: tuple[int, list[tuple[str, str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    port, asked = server
    with open_url(urllib.request.Request(f"http://localhost:{port}/metrics"), PATIENCE_SECONDS) as answer:
        assert answer.status == 200
    with pytest.raises(HTTPError, match="302"):
        open_url(f"http://localhost:{port}/redirect", PATIENCE_SECONDS)
    assert asked == [("/metrics", f"localhost:{port}"), ("/redirect", f"localhost:{port}")]


@pytest.mark.parametrize("url", ["gopher://127.0.0.1/", "file:///etc/hostname", "ftp://127.0.0.1/", "data:,x"])
def test_other_schemes_are_not_spoken(url: str) -> None:
    with pytest.raises(URLError, match="unknown url type"):
        open_url(url, PATIENCE_SECONDS)


@pytest.mark.parametrize("words", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_the_whole_answer_comes_in_time_or_none_does(words: bytes) -> None:
    """A server that sends a byte now and then would keep its asker forever."""
    given_up = threading.Event()

    def ask(url: str) -> None:
        with pytest.raises(OSError, match="timed out"), open_url(url, 0.5) as answer:
            answer.read()
        given_up.set()

    with speaking(words, drip=b"a") as url:
        asker = threading.Thread(target=ask, args=[url], daemon=True)
        asker.start()
        assert given_up.wait(PATIENCE_SECONDS)
        asker.join()


def test_a_name_of_many_addresses_is_given_no_more_time() -> None:
    tried: list[float] = []

    class Silent(socket.socket):
        def connect(self, place: Any) -> None:
            tried.append(self.gettimeout() or 0)
            time.sleep(0.02)
            raise TimeoutError("timed out")

    def many(host: str, port: int, *_: Any) -> list[tuple[Any, ...]]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (f"127.0.0.{n}", port)) for n in range(1, 100)]

    with pytest.raises(TimeoutError):
        connect("many.example.org", 9, 0.2, many, make=Silent)
    assert len(tried) <= 10
    assert tried == sorted(tried, reverse=True)


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("a\0b", "a?b"),
        ("two\r\nlines \x1b[31m", "two??lines ?[31m"),
        ("plain, é", "plain, é"),
        ("x" * 2000, "x" * 1024),
    ],
)
def test_what_a_server_says_in_an_error_can_be_stored_and_shown(words: str, shown: str) -> None:
    assert plain_words(OSError(words)) == shown


def test_credentials_of_an_address_are_sent_as_a_header() -> None:
    with receiving() as receiver:
        url = receiver.url.replace("http://", "http://me%40home:a%2Fb@")
        request = urllib.request.Request(url, b"{}", {"X-Other": "kept"}, method="POST")
        with open_url(request, PATIENCE_SECONDS) as answer:
            assert answer.status == 200
        headers, _ = receiver.asked[0]
    assert headers["Authorization"] == f"Basic {b64encode(b'me@home:a/b').decode()}"
    assert (headers["Host"], headers["X-Other"]) == (receiver.url.split("/")[2], "kept")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://me:a@b@host:80/x@y?z=@", "https://***@host:80/x@y?z=@"),
        ("http://host/me@home", "http://host/me@home"),
        ("http://host?me@home", "http://host?me@home"),
    ],
)
def test_credentials_of_an_address_are_not_shown(url: str, shown: str) -> None:
    assert without_credentials(url) == shown
