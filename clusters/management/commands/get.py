"""manage.py get: objects as YAML that applies again unchanged."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.models import Cluster
from clusters.manifests import get_manifests, to_yaml
from foundation.exceptions import KueuewebError


class Command(BaseCommand):
    """The words of kubectl: a kind in any form, a name, a namespace, a format."""

    help = "Print the objects of a kind: their names, or manifests that can be applied again unchanged."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add kubectl's options, where it has them."""
        parser.add_argument("kind", help="ClusterQueue, clusterqueues, cq ...")
        parser.add_argument("name", nargs="?", help="one object (default: all)")
        parser.add_argument("-n", "--namespace", help="of this namespace (default: all)")
        parser.add_argument("-o", "--output", choices=("name", "yaml", "json"), default="name")
        parser.add_argument("--cluster", default="default", help="the cluster's name (default: %(default)s)")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the objects that were found; an unknown name is an error."""
        cluster = Cluster.objects.filter(name=options["cluster"]).first()
        if cluster is None:
            raise CommandError(f'There is no cluster "{options["cluster"]}".')
        try:
            manifests = get_manifests(cluster, options["kind"], options["name"], options["namespace"])
        except KueuewebError as error:
            raise CommandError(error.message) from error
        if options["name"] and not manifests:
            raise CommandError(f"There is no {options['kind']} {options['name']} in cluster {cluster.name}.")
        self.stdout.write(_formatted(manifests, options["output"]), ending="")


def _formatted(manifests: list[dict[str, Any]], output: str) -> str:
    if output == "yaml":
        return to_yaml(manifests)
    if output == "json":
        return json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}, indent=2) + "\n"
    return "".join(f"{_name(manifest)}\n" for manifest in manifests)


def _name(manifest: dict[str, Any]) -> str:
    metadata = manifest.get("metadata") or {}
    key = "/".join(part for part in (metadata.get("namespace"), metadata.get("name")) if part)
    return f"{manifest['kind']} {key}".rstrip()
