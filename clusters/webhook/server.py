"""The webhook as a process: TLS, certificates that are renewed while it runs, and configurations that name it."""

from __future__ import annotations

import logging
import socket
import ssl
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Protocol

import uvicorn
from django.db import DatabaseError, close_old_connections

from accounts.kinds.process_settings import requires_tls_13, tls_1_2_ciphers
from clusters.api_errors import ClusterError
from clusters.api_objects import CUSTOM_RESOURCES, JsonObject, Kind
from clusters.client import ClusterClient
from clusters.reach_heartbeat import ReachHeartbeat
from clusters.served.kueue_kinds import GROUP, KUEUE_KINDS
from clusters.webhook.application import Receive, Scope, Send
from clusters.webhook.certificate_store import CertificateStore
from clusters.webhook.configurations import Target, conversion, webhook_configurations
from foundation.heartbeat import HEARTBEAT_SECONDS, Role, touch_file
from foundation.serving.connections import ConnectionLimits, limited_protocol

_log = logging.getLogger(__name__)

Application = Callable[[Scope, Receive, Send], Awaitable[None]]

REFRESH_SECONDS: Final = 60.0
MAX_CONNECTIONS_PER_ADDRESS: Final = 256
"""An API server opens one for each review that it waits for, and keeps them."""


@dataclass(frozen=True, slots=True)
class Served:
    """The served certificate in PEM, and the authorities that verify it (None: they were configured elsewhere)."""

    certificate: bytes
    key: bytes
    authorities: bytes | None


def made_by(store: CertificateStore) -> Callable[[], Served]:
    """Certificates of our own."""

    def current() -> Served:
        found = store.current()
        return Served(found.certificate, found.key, found.authorities)

    return current


def given(certificate: Path, key: Path, authorities: Path | None) -> Callable[[], Served]:
    """Return certificates from files that another program renews."""
    return lambda: Served(
        certificate.read_bytes(), key.read_bytes(), None if authorities is None else authorities.read_bytes()
    )


class Registers(Protocol):
    """Writes our address to the cluster."""

    def write(self, authorities: bytes | None) -> None:
        """Raises ClusterError."""


class Registration:
    """Keeps the webhook configurations of a cluster up to date, unless kueueweb must not write there.

    If kueueweb serves Kueue's objects, it also converts them between their versions, as Kueue's webhook does.
    """

    def __init__(
        self,
        client: ClusterClient,
        target: Target,
        observes_only: Callable[[], bool],
        serves_kueue: Callable[[], bool] = lambda: False,
    ) -> None:
        self._client = client
        self._target = target
        self._observes_only = observes_only
        self._serves_kueue = serves_kueue

    def write(self, authorities: bytes | None) -> None:
        """Raises ClusterError."""
        if self._observes_only():
            return
        target = replace(self._target, authorities=authorities)
        for kind, wanted in webhook_configurations(target):
            self._move(kind, wanted["metadata"]["name"], target)
            self._client.apply(kind, wanted)
        if self._serves_kueue():
            self._convert(conversion(target))

    def _move(self, kind: Kind, name: str, target: Target) -> None:
        """Remove the address that another manager set, such as the Service of an applied manifest: the API server
        refuses an object with both addresses."""
        there = self._client.get(kind, "", name)
        webhooks = (there or {}).get("webhooks") or []
        moved = [{**each, "clientConfig": target.moved(each.get("clientConfig") or {})} for each in webhooks]
        if there is not None and moved != webhooks:
            metadata = {"resourceVersion": there["metadata"]["resourceVersion"]}
            self._client.patch(kind, "", name, {"metadata": metadata, "webhooks": moved})

    def _convert(self, wanted: JsonObject) -> None:
        """Write the conversion webhook into the definitions with several versions."""
        for kinds in KUEUE_KINDS.values():
            name = f"{kinds[0].plural}.{GROUP}"
            found = self._client.get(CUSTOM_RESOURCES, "", name)
            if found is None or len(found["spec"].get("versions") or ()) < 2:
                continue
            there = found["spec"].get("conversion") or {}
            where = (there.get("webhook") or {}).get("clientConfig") or {}
            ours = wanted["webhook"]["clientConfig"]
            if there.get("strategy") == wanted["strategy"] and ours.items() <= where.items():
                continue
            config = {**dict.fromkeys(where), **ours}  # a merge patch: other keys are removed
            told = {**wanted, "webhook": {**wanted["webhook"], "clientConfig": config}}
            self._client.patch(CUSTOM_RESOURCES, "", name, {"spec": {"conversion": told}})


class WebhookServer:
    """Serves until it is stopped; `refresh` takes over a renewed certificate without a pause."""

    def __init__(
        self,
        application: Application,
        listening: socket.socket,
        current: Callable[[], Served],
        registration: Registers | None,
        grace_seconds: int = 5,
        *,
        role: Role = Role.WEBHOOK,
        cluster: str = "",
        reach: Callable[[], None] = lambda: None,
        callers: Callable[[], bytes] | None = None,
        tls: Mapping[str, Any] | None = None,
    ) -> None:
        """`grace_seconds`: for open requests at the end. `callers`: the authorities of callers' certificates, in PEM;
        None: callers need no certificate. `reach` asks the servers that answers need, and raises ClusterError or
        DatabaseError where one does not answer. `tls`: the Configuration of the cluster, whose block `tls` applies.

        Raises ClusterError or OSError if there is no certificate.
        """
        self._life = ReachHeartbeat(role, cluster, reach)
        self._current = current
        self._registration = registration
        self._listening = listening
        # Accepted connections inherit the option. Without it, the second half of an answer waits 40 ms for the
        # acknowledgement of the first.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._folder = tempfile.TemporaryDirectory(prefix="webhook-")
        self._served = current()
        self._callers = callers
        self._trusted = b"" if callers is None else callers()
        self._config = uvicorn.Config(
            application,
            http=limited_protocol(ConnectionLimits(MAX_CONNECTIONS_PER_ADDRESS)),
            loop="asyncio",  # uvloop does not end while it closes a TLS connection that was cut off
            lifespan="on",
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ssl_certfile=self._write("tls.crt", self._served.certificate),
            ssl_keyfile=self._write("tls.key", self._served.key),
            ssl_ca_certs=None if callers is None else self._write("callers.crt", self._trusted),
            ssl_cert_reqs=ssl.CERT_NONE if callers is None else ssl.CERT_REQUIRED,
            timeout_graceful_shutdown=grace_seconds,
            timeout_keep_alive=75,
        )
        self._config.load()
        settings = tls or {}
        self._context.minimum_version = ssl.TLSVersion.TLSv1_3 if requires_tls_13(settings) else ssl.TLSVersion.TLSv1_2
        ciphers = tls_1_2_ciphers(settings)
        if ciphers:
            self._context.set_ciphers(":".join(ciphers))
        self._server = uvicorn.Server(self._config)

    @property
    def _context(self) -> ssl.SSLContext:
        context = self._config.ssl
        if context is None:
            raise RuntimeError("the webhook is served only with TLS")
        return context

    def _write(self, name: str, content: bytes) -> str:
        path = Path(self._folder.name) / name
        path.touch(mode=0o600)
        path.write_bytes(content)
        return str(path)

    def refresh(self) -> None:
        """Write our address to the cluster, then serve the certificate that the cluster can now verify. Raises
        ClusterError or OSError."""
        now = self._current()
        trusted = b"" if self._callers is None else self._callers()
        if trusted != self._trusted:
            self._context.load_verify_locations(cadata=trusted.decode())
            self._trusted = trusted
        if self._registration is not None:
            self._registration.write(now.authorities)
        if now != self._served:
            certificate, key = self._write("tls.crt", now.certificate), self._write("tls.key", now.key)
            self._context.load_cert_chain(certificate, key)
            self._served = now
            _log.info("The webhook serves a new certificate")

    def run(self) -> None:
        """Serve until SIGINT, SIGTERM or `stop`."""
        stopped = threading.Event()
        keeper = threading.Thread(target=self._keep, args=(stopped,), name="webhook-keeper", daemon=True)
        keeper.start()
        # A server that is cut off may answer after minutes: the end does not wait for it.
        threading.Thread(target=self._life.run, args=(stopped,), name="webhook-life", daemon=True).start()
        try:
            self._server.run([self._listening])
        finally:
            stopped.set()
            keeper.join()
            self._folder.cleanup()

    def stop(self) -> None:
        self._server.should_exit = True

    def _keep(self, stopped: threading.Event) -> None:
        due = 0.0
        while not stopped.is_set():
            if time.monotonic() >= due:
                try:
                    self.refresh()
                except (ClusterError, DatabaseError, OSError, ssl.SSLError) as error:
                    _log.error("The webhook's certificate or configurations could not be renewed: %s", error)
                close_old_connections()  # otherwise this thread keeps a closed connection
                due = time.monotonic() + REFRESH_SECONDS
            touch_file()
            stopped.wait(HEARTBEAT_SECONDS)
