"""manage.py apply: store manifests, as `kubectl apply` does."""

import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError

from accounts.models import Cluster
from clusters.manifests import ApplyResult, apply_documents
from foundation.exceptions import KueuewebError
from queues.manifests.documents import Document, read_documents

_SUFFIXES: Final = (".yaml", ".yml", ".json")


class Command(BaseCommand):
    """All files of a call are stored together, or none of them."""

    help = "Store the objects of YAML manifests: all of them or, if one has a mistake, none."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add kubectl's options, where it has them."""
        parser.add_argument(
            "-f", "--filename", action="append", required=True, metavar="FILE|DIR|-", help="may be given several times"
        )
        parser.add_argument("--cluster", default="default", help="the cluster's name (default: %(default)s)")
        parser.add_argument("--user", help="apply with this user's permissions (default: all permissions)")
        parser.add_argument("--dry-run", action="store_true", help="validate and show the changes without storing them")
        parser.add_argument(
            "--set",
            dest="applied_set",
            default="",
            metavar="NAME",
            help="a name for the applied objects",
        )
        parser.add_argument(
            "--prune",
            action="store_true",
            help="remove objects of --set that are no longer in the files",
        )
        parser.add_argument("--skip-unsupported", action="store_true", help="skip documents of unsupported kinds")
        parser.add_argument("--force", action="store_true", help="with --prune: end workloads that hold quota, too")

    def handle(self, *args: Any, **options: Any) -> None:
        """Read all files, then apply them in one call."""
        try:
            documents = _read_all(options["filename"])
            result = apply_documents(
                _cluster(options["cluster"]),
                documents,
                user=_user(options["user"]),
                dry_run=options["dry_run"],
                applied_set=options["applied_set"],
                prune=options["prune"],
                force=options["force"],
                skip_unsupported=options["skip_unsupported"],
            )
        except KueuewebError as error:
            raise CommandError(_explained(error)) from error
        self._show(result)

    def _show(self, result: ApplyResult) -> None:
        for mistake in result.skipped:
            self.stderr.write(self.style.WARNING(f"skipped: document {mistake.document}: {mistake.rule}"))
        suffix = " (dry run)" if result.dry_run else ""
        for applied in result.objects:
            key = f"{applied.namespace}/{applied.name}" if applied.namespace else applied.name
            who = f"{applied.kind} {key}".strip()
            self.stdout.write(f"{who} {applied.action.value}{suffix}")
            for warning in applied.warnings:
                self.stderr.write(self.style.WARNING(f"warning: {who}: {warning}"))


def _read_all(names: list[str]) -> list[Document]:
    documents: list[Document] = []
    for source, text in _texts(names):
        documents += read_documents(text, source=source)
    return documents


def _texts(names: list[str]) -> Iterator[tuple[str, bytes]]:
    for name in names:
        if name == "-":
            yield "standard input", sys.stdin.buffer.read()
            continue
        path = Path(name)
        if not path.exists():
            raise CommandError(f"{name}: there is no such file or folder.")
        files = sorted(file for file in path.rglob("*") if file.suffix in _SUFFIXES) if path.is_dir() else [path]
        if not files:
            raise CommandError(f"{name}: there is no file in this folder that ends in {', '.join(_SUFFIXES)}.")
        for file in files:
            yield str(file), file.read_bytes()


def _cluster(name: str) -> Cluster:
    """Return the cluster; the first apply creates `default`."""
    if name == "default":
        return Cluster.objects.get_or_create(name=name)[0]
    cluster = Cluster.objects.filter(name=name).first()
    if cluster is None:
        known = ", ".join(Cluster.objects.values_list("name", flat=True)) or "none"
        raise CommandError(f'There is no cluster "{name}". There are: {known}.')
    return cluster


def _user(name: str | None) -> Any:
    if name is None:
        return None
    user = get_user_model().objects.filter(username=name).first()
    if user is None:
        raise CommandError(f'There is no user "{name}".')
    return user


def _explained(error: KueuewebError) -> str:
    if not error.errors:
        return error.message
    count = len(error.errors)
    heading = f"{count} mistake{'' if count == 1 else 's'}; nothing was stored."
    return "\n".join([heading, *(f"  {mistake}" for mistake in error.errors)])
