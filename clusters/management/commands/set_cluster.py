"""`manage.py set_cluster`: a cluster's row, the address of its API server, and its settings."""

from __future__ import annotations

from argparse import ArgumentParser, BooleanOptionalAction
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.models import Cluster, ClusterMode, DeviceBinding
from accounts.services.cluster_settings import (
    set_accepted_managers,
    set_device_binding,
    set_mode,
    set_placement,
    set_serves_kueue_objects,
)
from foundation.exceptions import Conflict
from scheduling.model.vocabulary import PlacementScope


class Command(BaseCommand):
    """Running it again changes nothing."""

    help = "Register a cluster, or change its mode or the address of its API server."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--cluster", default="default", help="name of the cluster (default: %(default)s)")
        parser.add_argument(
            "--server-url",
            help="address of its API server, used with the kubeconfig's credentials for it; empty: as configured",
        )
        parser.add_argument("--mode", choices=[mode.value for mode in ClusterMode], help="the mode of the cluster")
        parser.add_argument(
            "--serve-kueue-objects",
            action=BooleanOptionalAction,
            default=None,
            help="whether kueueweb serves Kueue's objects there in mode schedule; the cluster needs Kueue's CRDs",
        )

        parser.add_argument(
            "--device-binding",
            choices=[binding.value for binding in DeviceBinding],
            help="the scheduler that binds pods with devices: kueueweb (bind), or HAMi's after kueueweb's choice (pin)",
        )

        parser.add_argument(
            "--placement",
            choices=[scope.value for scope in PlacementScope],
            help=(
                "the pods that kueueweb places on nodes: those of workloads with devices, also those in flavors "
                "with a topology, or all"
            ),
        )

        parser.add_argument(
            "--accept-workloads-from",
            nargs="*",
            metavar="CLUSTER",
            help="the complete list of clusters whose MultiKueue may run workloads here; none: no cluster",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        cluster, _ = Cluster.objects.get_or_create(name=options["cluster"])
        if options["server_url"] is not None:
            Cluster.objects.filter(pk=cluster.pk).update(server_url=options["server_url"])
        if options["mode"]:
            try:
                set_mode(cluster, ClusterMode(options["mode"]))
            except Conflict as refused:
                raise CommandError(str(refused)) from refused
        if options["serve_kueue_objects"] is not None:
            set_serves_kueue_objects(cluster, serves=options["serve_kueue_objects"])
        if options["device_binding"]:
            set_device_binding(cluster, DeviceBinding(options["device_binding"]))
        if options["placement"]:
            set_placement(cluster, PlacementScope(options["placement"]))
        if options["accept_workloads_from"] is not None:
            set_accepted_managers(cluster, options["accept_workloads_from"])
        cluster.refresh_from_db()
        self.stdout.write(f"{cluster.name}: mode {cluster.mode}, API server {cluster.server_url or 'as configured'}")
