"""With which credentials a cluster's API server is asked."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Self

import orjson
import pytest
import yaml
from kubernetes.config import kube_config

from clusters.api_errors import ClusterUnreachable
from clusters.api_objects import NODES
from clusters.client_credentials import connect
from clusters.webhook.certificates import renewed

HOST = "127.0.0.1"


class SecureServer:
    """An https server that notes the credentials of each request, and its certificate authority."""

    def __init__(self, folder: Path) -> None:
        certificates = renewed(None, [HOST], datetime.now(UTC))
        self.authorities = folder / "ca.crt"
        self.authorities.write_bytes(certificates.authorities)
        (folder / "tls.crt").write_bytes(certificates.certificate)
        (folder / "tls.key").write_bytes(certificates.key)
        self.credentials: list[str] = []
        self._server = HTTPServer((HOST, 0), self._handler())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = f"https://{HOST}:{self._server.server_port}"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        noted = self.credentials

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                noted.append(self.headers.get("Authorization", ""))
                self.send_response(200)
                self.end_headers()
                self.wfile.write(orjson.dumps({"metadata": {"resourceVersion": "1"}, "items": []}))

            def log_message(self, *args: object) -> None:
                """Nothing."""

        return Handler

    def __enter__(self) -> Self:
        Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *args: object) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SecureServer]:
    with SecureServer(tmp_path) as running:
        yield running


@pytest.fixture
def kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "config"
    monkeypatch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", str(path))
    return path


def content(*contexts: tuple[str, str], authorities: Path | None = None) -> str:
    """A kubeconfig of (name, address); the token of each is its name with `-token`."""
    trust = {"certificate-authority": str(authorities)} if authorities else {}
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": contexts[0][0],
            "clusters": [{"name": name, "cluster": {"server": url, **trust}} for name, url in contexts],
            "users": [{"name": name, "user": {"token": f"{name}-token"}} for name, _ in contexts],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}} for name, _ in contexts],
        }
    )


def test_an_address_replaces_the_host_and_keeps_credentials_and_authority(
    server: SecureServer, kubeconfig: Path
) -> None:
    kubeconfig.write_text(content(("lab", "https://lab.example:6443"), authorities=server.authorities))
    client = connect(server.url)
    for _ in range(3):  # the package refreshes the token before each request
        client.list(NODES)
    assert client.server == server.url
    assert server.credentials == ["Bearer lab-token"] * 3


def test_an_address_in_the_kubeconfig_has_the_credentials_of_its_context(
    server: SecureServer, kubeconfig: Path
) -> None:
    contexts = ("lab", "https://lab.example:6443"), ("other", f"{server.url}/")
    kubeconfig.write_text(content(*contexts, authorities=server.authorities))
    connect(server.url).list(NODES)
    assert server.credentials == ["Bearer other-token"]


def test_the_present_context_comes_before_others_of_the_same_address(server: SecureServer, kubeconfig: Path) -> None:
    contexts = ("present", server.url), ("admin", server.url)
    kubeconfig.write_text(content(*contexts, authorities=server.authorities))
    connect(server.url).list(NODES)
    assert server.credentials == ["Bearer present-token"]


def test_an_untrusted_certificate_is_the_first_thing_that_the_error_says(
    server: SecureServer, kubeconfig: Path
) -> None:
    kubeconfig.write_text(content(("lab", "https://lab.example:6443")))
    with pytest.raises(ClusterUnreachable) as refused:
        connect(server.url).list(NODES)
    assert refused.value.message.startswith(f"{server.url}: the certificate of the server is not trusted: ")
    assert "\n" not in refused.value.message
    assert server.credentials == []


def test_no_credentials_are_sent_in_the_clear(kubeconfig: Path) -> None:
    kubeconfig.write_text(content(("lab", "http://127.0.0.1:9")))
    assert "lab-token" not in str(connect("http://127.0.0.1:9")._configuration.auth_settings())


def test_an_address_without_any_credentials_says_so(kubeconfig: Path) -> None:
    with pytest.raises(ClusterUnreachable, match=r"no credentials for https://lab\.example:6443"):
        connect("https://lab.example:6443")
