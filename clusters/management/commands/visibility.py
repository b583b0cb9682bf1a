"""`manage.py visibility`: pending workloads and their positions, for `kubectl` and kueuectl."""

from __future__ import annotations

import socket
from argparse import ArgumentParser
from datetime import UTC, datetime
from functools import partial
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.kinds.process_settings import visibility_listener
from accounts.models import Cluster
from clusters.api_errors import ClusterError
from clusters.connection import client_for
from clusters.reach_heartbeat import reach_servers
from clusters.webhook.certificate_store import CertificateStore
from clusters.webhook.configurations import Target
from clusters.webhook.server import WebhookServer, made_by
from clusters.webhook.visibility import ApiServices, VisibilityApplication, front_proxy_authorities
from foundation.heartbeat import Role
from foundation.migrated import wait_until_migrated
from foundation.outages import patiently

_BACKLOG = 128
_EVERY_ADDRESS = "0.0.0.0"  # noqa: S104 - the API server comes from outside
_PORT = 8082


class Command(BaseCommand):
    """Runs until SIGINT or SIGTERM."""

    help = "Serve Kueue's visibility API of a cluster over TLS, to its API server only."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--cluster", default="default", help="name of the cluster (default: %(default)s)")
        parser.add_argument("--host", default="", help="address to listen on (default: the Configuration's, else all)")
        parser.add_argument("--port", type=int, help="port to listen on (default: the Configuration's, else 8082)")
        parser.add_argument(
            "--namespace", default="kueueweb", help="namespace of the Service and the Secret (%(default)s)"
        )
        parser.add_argument(
            "--service",
            default="visibility",
            help="the Service by which the API server reaches this process (%(default)s)",
        )
        parser.add_argument("--secret", default="visibility-certificates", help="the Secret for the certificates")

    def handle(self, *args: Any, **options: Any) -> None:
        wait_until_migrated()
        cluster = patiently(Cluster.objects.filter(name=options["cluster"]).first)
        if cluster is None:
            raise CommandError(f"There is no cluster {options['cluster']!r}.")
        if cluster.is_mirrored:
            raise CommandError(
                f"Cluster {cluster.name} is in mode {cluster.mode}: its Kueue serves the visibility API itself."
            )
        target = Target(options["namespace"], options["service"])
        host = f"{target.service}.{target.namespace}.svc"
        try:
            where = visibility_listener(cluster.configuration)
            address = options["host"] or where.address or _EVERY_ADDRESS
            port = options["port"] if options["port"] is not None else where.port or _PORT
            listening = socket.create_server((address, port), backlog=_BACKLOG)
            client = client_for(cluster)
            store = CertificateStore(client, target.namespace, options["secret"], [host], lambda: datetime.now(UTC))
            server = WebhookServer(
                VisibilityApplication(cluster),
                listening,
                made_by(store),
                ApiServices(client, target),
                role=Role.VISIBILITY,
                cluster=cluster.name,
                reach=partial(reach_servers, cluster, client),
                callers=partial(front_proxy_authorities, client),
                tls=cluster.configuration,
            )
        except (ClusterError, OSError, OverflowError) as error:
            raise CommandError(f"Cluster {cluster.name}: {error}") from error
        self.stdout.write(f"visibility API of {cluster.name} on port {listening.getsockname()[1]}")
        self.stdout.flush()
        server.run()
