"""`manage.py webhook`: answers the API server before it stores jobs and pods."""

from __future__ import annotations

import logging
import socket
import time
from argparse import ArgumentParser
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from accounts.kinds.process_settings import needs_given_certificates, webhook_listener
from accounts.models import MIRRORED_MODES, Cluster
from clusters.api_errors import ClusterError, ClusterUnreachable
from clusters.client import ClusterClient
from clusters.connection import client_for
from clusters.reach_heartbeat import reach_servers
from clusters.webhook.admission import Admission
from clusters.webhook.application import WebhookApplication
from clusters.webhook.certificate_store import CertificateStore
from clusters.webhook.configurations import Target
from clusters.webhook.server import Registration, Served, WebhookServer, given, made_by
from clusters.webhook.surroundings import ClusterSurroundings
from foundation.migrated import wait_until_migrated
from foundation.outages import patiently

_BACKLOG = 128
_EVERY_ADDRESS = "0.0.0.0"  # noqa: S104 - the API server comes from outside
_PORT = 9443
_PATIENCE_SECONDS = 2.0
_log = logging.getLogger(__name__)


class Command(BaseCommand):
    """Runs until SIGINT or SIGTERM."""

    help = "Serve the admission webhook of a cluster over TLS, and register it with the API server."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--cluster", default="default", help="name of the cluster (default: %(default)s)")
        parser.add_argument("--host", default="", help="address to listen on (default: the Configuration's, else all)")
        parser.add_argument("--port", type=int, help="port to listen on (default: the Configuration's, else 9443)")
        parser.add_argument(
            "--namespace", default="kueueweb", help="namespace of the Service and the Secret (%(default)s)"
        )
        parser.add_argument(
            "--service",
            default="webhook",
            help="the Service by which the API server reaches this process (%(default)s)",
        )
        parser.add_argument("--url", default="", help="its address without a Service: https://HOST:PORT")
        parser.add_argument(
            "--secret", default="webhook-certificates", help="the Secret for the certificates (%(default)s)"
        )
        parser.add_argument("--certificate", type=Path, help="a certificate of yours (PEM), in place of kueueweb's own")
        parser.add_argument("--key", type=Path, help="its key (PEM)")
        parser.add_argument("--authorities", type=Path, help="its authority (PEM); without it, write caBundle yourself")
        parser.add_argument(
            "--callers",
            type=Path,
            help="the authority of the API server's client certificate (PEM); without it, no certificate is required",
        )
        parser.add_argument("--no-register", action="store_true", help="do not write the webhook configurations")

    def handle(self, *args: Any, **options: Any) -> None:
        if (options["certificate"] is None) != (options["key"] is None):
            raise CommandError("--certificate and --key: Required value: give both, or neither.")
        wait_until_migrated()
        cluster = patiently(Cluster.objects.filter(name=options["cluster"]).first)
        if cluster is None:
            raise CommandError(f"There is no cluster {options['cluster']!r}.")
        if cluster.mode in MIRRORED_MODES:
            raise CommandError(f"Cluster {cluster.name} is in mode {cluster.mode}: another webhook decides.")
        if needs_given_certificates(cluster.configuration) and options["certificate"] is None:
            raise CommandError("--certificate: Required value: internalCertManagement.enable is false.")
        if not settings.WEBHOOK_TRUSTED_USERS:
            raise CommandError("WEBHOOK_TRUSTED_USERS: Required value: the account of the push workers in the cluster.")
        target = Target(options["namespace"], options["service"], url=options["url"])
        try:
            where = webhook_listener(cluster.configuration)
            address = options["host"] or where.address or _EVERY_ADDRESS
            port = options["port"] if options["port"] is not None else where.port or _PORT
            listening = socket.create_server((address, port), backlog=_BACKLOG)
            client = client_for(cluster)
            surroundings = ClusterSurroundings(cluster, client, frozenset(settings.WEBHOOK_TRUSTED_USERS))
            written = not options["no_register"]
            asked = (surroundings.observes_only, surroundings.serves_kueue)
            registration = Registration(client, target, *asked) if written else None
            application = WebhookApplication(Admission(surroundings))
            certificates = _answered(_certificates(client, target, options))
            callers = options["callers"].read_bytes if options["callers"] is not None else None
            server = WebhookServer(
                application,
                listening,
                certificates,
                registration,
                cluster=cluster.name,
                reach=partial(reach_servers, cluster, client),
                callers=callers,
                tls=cluster.configuration,
            )
        except (ClusterError, OSError, OverflowError) as error:
            raise CommandError(f"Cluster {cluster.name}: {error}") from error
        self.stdout.write(f"admission webhook of {cluster.name} on port {listening.getsockname()[1]}")
        self.stdout.flush()
        server.run()


def _answered(current: Callable[[], Served]) -> Callable[[], Served]:
    """Return the same, as soon as the cluster answers for the first time."""
    while True:
        try:
            current()
        except ClusterUnreachable as error:
            _log.warning("The webhook waits for its cluster: %s", error)
            time.sleep(_PATIENCE_SECONDS)
        else:
            return current


def _certificates(client: ClusterClient, target: Target, options: dict[str, Any]) -> Callable[[], Served]:
    if options["certificate"] is not None:
        return given(options["certificate"], options["key"], options["authorities"])
    host = urlsplit(target.url).hostname if target.url else f"{target.service}.{target.namespace}.svc"
    if not host:
        raise CommandError("--url: Invalid value: must be https://HOST:PORT.")
    return made_by(CertificateStore(client, target.namespace, options["secret"], [host], lambda: datetime.now(UTC)))
