"""`manage.py convert`: write the objects of other schedulers as ours, with a report of each field that changes."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError

from clusters.manifests import to_yaml
from clusters.manifests.translation.kueue_export import export_to_kueue
from clusters.manifests.translation.slurm_configuration import is_sacctmgr_dump, is_slurm_conf, translate_slurm
from clusters.manifests.translation.translated import JsonObject, Translation
from clusters.manifests.translation.translations import translate_files
from clusters.manifests.translation.volcano_export import export_to_volcano
from foundation.exceptions import ManifestErrors
from queues.manifests.documents import read_documents
from queues.manifests.kueue_keys import QUEUE_NAME

_LOCAL_QUEUE: Final = "kueue.x-k8s.io/v1beta2"


_EXPORTS: Final = {"kueue": export_to_kueue, "volcano": export_to_volcano}


class Command(BaseCommand):
    """Convert files; a mistake in any of them ends the command, and nothing is written."""

    help = (
        "Convert Volcano's objects, YuniKorn's queues.yaml, KAI's Queues, slurm.conf and the dump of sacctmgr to "
        "standard output, and report each field on standard error. With --to, export ours to Kueue or Volcano."
    )
    requires_system_checks: list[str] = []  # needs neither database nor network

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--to", choices=["ours", *_EXPORTS], default="ours", help="default: ours")
        parser.add_argument("files", nargs="+", type=Path, help="files; other objects in them are not changed")

    def handle(self, *args: Any, **options: Any) -> None:
        """Convert all files together: queues refer to each other, and pods to their group."""
        texts = {path: _text(path) for path in options["files"]}
        contents, translations = _slurm(texts)
        others = [content for path, text in texts.items() if not _is_slurm(text) for content in _contents(path, text)]
        translations |= {len(contents) + place: made for place, made in translate_files(others).items()}
        contents = [*contents, *others]
        if export := _EXPORTS.get(options["to"]):
            translations = dict(enumerate(export(contents)))
        refused = [
            f"{_named(contents[place])}, {refusal.path}: {refusal.value!r}: {refusal.rule}. {refusal.remedy}".rstrip()
            for place, made in translations.items()
            for refusal in made.refusals
        ]
        if refused:
            raise CommandError("\n".join(["Nothing was converted:", *refused]))
        if export:
            self.stdout.write(to_yaml([manifest for made in translations.values() for manifest in made.manifests]))
        else:
            self.stdout.write(to_yaml(converted(contents, translations)))
        for place, made in sorted(translations.items()):
            self._report(_named(contents[place]), made)

    def _report(self, name: str, made: Translation) -> None:
        for note in made.lost:
            self.stderr.write(self.style.WARNING(f"lost: {name}, {note.path}: {note.text}"))
        for note in made.kept:
            self.stderr.write(f"kept: {name}, {note.path}: {note.text}")


def converted(contents: Sequence[Mapping[str, Any]], translations: Mapping[int, Translation]) -> list[JsonObject]:
    """Return our manifests: what all share first, then each object, then a LocalQueue for each queue of a namespace."""
    shared = [manifest for made in translations.values() for manifest in made.shared]
    objects: list[JsonObject] = []
    for place, content in enumerate(contents):
        objects += translations[place].manifests if place in translations else [dict(content)]
    return [*shared, *objects, *_local_queues(objects)]


def _local_queues(objects: Iterable[JsonObject]) -> list[JsonObject]:
    there = {(_namespace(each), each["metadata"]["name"]) for each in objects if each.get("kind") == "LocalQueue"}
    named = {
        (_namespace(each), queue)
        for each in objects
        if (queue := ((each.get("metadata") or {}).get("labels") or {}).get(QUEUE_NAME))
    }
    return [
        {
            "apiVersion": _LOCAL_QUEUE,
            "kind": "LocalQueue",
            "metadata": {"name": queue, "namespace": namespace},
            "spec": {"clusterQueue": queue},
        }
        for namespace, queue in sorted(named - there)
    ]


def _namespace(content: Mapping[str, Any]) -> str:
    return str((content.get("metadata") or {}).get("namespace") or "default")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path}: {getattr(error, 'strerror', None) or error}") from error


def _is_slurm(text: str) -> bool:
    return is_slurm_conf(text) or is_sacctmgr_dump(text)


def _slurm(texts: Mapping[Path, str]) -> tuple[list[Mapping[str, Any]], dict[int, Translation]]:
    """Return a stand-in for the files of Slurm, and their one translation; nothing without such a file."""
    files = {path: text for path, text in texts.items() if _is_slurm(text)}
    if not files:
        return [], {}
    conf, dump = ("\n".join(filter(test, files.values())) for test in (is_slurm_conf, is_sacctmgr_dump))
    stand_in = {"kind": "Slurm", "metadata": {"name": " ".join(path.name for path in files)}}
    return [stand_in], {0: translate_slurm(conf, dump)}


def _contents(path: Path, text: str) -> list[Mapping[str, Any]]:
    try:
        documents = read_documents(text)
    except ManifestErrors as error:
        raise CommandError(f"{path}: {error}") from error
    found: list[Mapping[str, Any]] = []
    for document in documents:
        content = document.content
        items = content.get("items") if content.get("kind") == "List" else None
        found += [item for item in items if isinstance(item, Mapping)] if isinstance(items, list) else [content]
    return found


def _named(content: Mapping[str, Any]) -> str:
    metadata = content.get("metadata")
    name = metadata.get("name", "?") if isinstance(metadata, Mapping) else "?"
    return f"{content.get('kind')} {name}"
