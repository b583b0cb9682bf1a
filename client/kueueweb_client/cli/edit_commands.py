"""edit, patch, label, annotate: changes of single objects."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kueueweb_client.cli import completion
from kueueweb_client.cli.changing import change_object, merged, read_object, write_object
from kueueweb_client.cli.session import Namespace, client, namespace_of, noun_of, say, warn
from kueueweb_client.documents import of_yaml, to_yaml
from kueueweb_client.errors import ApiError, ClientError
from kueueweb_client.nouns import Noun
from kueueweb_client.types import Object

if TYPE_CHECKING:
    from kueueweb_client.client import Client

_HEAD: Final = """\
# Edit the object below. Lines that begin with # are ignored, and an empty file ends the edit.
# It is stored only if no other user changes the object meanwhile.
"""
Kind = Annotated[str, typer.Argument(help="A kind.", autocompletion=completion.kinds_and_names)]
Name = Annotated[str, typer.Argument(help="The object.", autocompletion=completion.kinds_and_names)]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Validate the change without storing it.")]


def _where(noun: Noun, namespace: str) -> str:
    return namespace_of(namespace) if noun.namespaced else ""


def _edit(kind: Kind, name: Name, namespace: Namespace = "") -> None:
    """Edit an object in $EDITOR. If another user edits it meanwhile, nothing is stored and your file is kept."""
    noun = noun_of(kind)
    with client() as asked:
        found = read_object(asked, noun, _where(noun, namespace), name)
        before = to_yaml({key: value for key, value in found.items() if key != "status"})
        file = _temporary(f"{noun.kind.lower()}-{name}", _HEAD + before)
        _edited(asked, noun, found, before, file)
    file.unlink(missing_ok=True)


def _edited(asked: Client, noun: Noun, found: Object, before: str, file: Path) -> None:
    """Let the user edit until the object is stored, unchanged or refused by a conflict."""
    label = f"{noun.kind.lower()}/{found['metadata']['name']}"
    refused = ""
    while True:
        written = _in_editor(file)
        if refused and written == refused:
            raise ClientError(f"The edit was not stored. It is saved in: {file}")
        text = _without_comments(written)
        if not text.strip() or text == before:
            say(f"{label} unchanged")
            return
        try:
            write_object(asked, noun, _read(text, found))
        except ClientError as error:
            if not _is_mistake(error):
                _show_conflict(asked, noun, found, error, file)
                raise
            refused = _tell(file, str(error), text)
        else:
            say(f"{label} edited")
            return


def _is_mistake(error: ClientError) -> bool:
    """Return whether the user can mend the text; the editor then opens again."""
    return not isinstance(error, ApiError) or error.status in (400, 422)


def _tell(file: Path, mistake: str, text: str) -> str:
    """Return the text with the refusal as a comment above it, for the next edit."""
    lines = "".join(f"# {line}\n" for line in mistake.splitlines())
    written = f"{_HEAD}#\n{lines}{text}"
    file.write_text(written, encoding="utf-8")
    warn(mistake)
    return written


def _show_conflict(asked: Client, noun: Noun, found: Object, error: ClientError, file: Path) -> None:
    """Show how the object differs from the one that was edited, and where the edit is kept."""
    import difflib

    metadata = found["metadata"]
    warn(f"{error}\nYour edit is saved in: {file}")
    try:
        now = read_object(asked, noun, metadata.get("namespace", "") if noun.namespaced else "", metadata["name"])
    except ApiError:
        return
    before, after = (to_yaml({**each, "status": None}).splitlines() for each in (found, now))
    for line in difflib.unified_diff(before, after, "as you read it", "as it is now", lineterm=""):
        warn(line)


def _temporary(name: str, text: str) -> Path:
    """Return a file that only its owner reads."""
    safe = "".join(letter if letter.isalnum() or letter in "-." else "-" for letter in name)
    number, path = tempfile.mkstemp(prefix=f"kueueweb-edit-{safe}-", suffix=".yaml")
    with os.fdopen(number, "w", encoding="utf-8") as output:
        output.write(text)
    return Path(path)


def _in_editor(file: Path) -> str:
    words = shlex.split(
        os.environ.get("KUEUEWEB_EDITOR") or os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    )
    try:
        subprocess.run([*words, str(file)], check=True)  # noqa: S603  # the user's own editor
    except (OSError, subprocess.CalledProcessError) as error:
        raise ClientError(f"The editor {words[0]} failed: {error}. Your edit is saved in: {file}") from error
    return file.read_text(encoding="utf-8")


def _without_comments(text: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("#"))


def _read(text: str, found: Object) -> Object:
    """Read the edited object. Raises `ClientError` for text that is not a manifest, or that is another object."""
    import yaml

    try:
        changed = of_yaml(text)
    except yaml.YAMLError as error:
        raise ClientError(f"Invalid value: {error}") from error
    if not isinstance(changed, dict) or not isinstance(changed.get("metadata"), dict):
        raise ClientError("Required value: metadata")
    for key in ("apiVersion", "kind"):
        if changed.get(key) != found[key]:
            raise ClientError(f"{key}: field is immutable")
    for key in ("name", "namespace"):
        if changed["metadata"].get(key) != found["metadata"].get(key):
            raise ClientError(f"metadata.{key}: field is immutable")
    return changed


class PatchType(StrEnum):
    """The forms of a patch."""

    MERGE = "merge"
    JSON = "json"


def _patch(
    kind: Kind,
    name: Name,
    namespace: Namespace = "",
    patch: Annotated[str, typer.Option("--patch", "-p", help="The patch, in JSON or YAML.")] = "",
    patch_file: Annotated[str, typer.Option("--patch-file", help="A file with the patch.")] = "",
    form: Annotated[
        PatchType, typer.Option("--type", help="merge: RFC 7396; json: the operations of RFC 6902.")
    ] = PatchType.MERGE,
    dry_run: DryRun = False,
) -> None:
    """Change some fields of an object."""
    import yaml

    if bool(patch) == bool(patch_file):
        raise typer.BadParameter("give -p or --patch-file", param_hint="--patch")
    try:
        wanted = of_yaml(patch or Path(patch_file).read_text(encoding="utf-8"))
    except (yaml.YAMLError, OSError) as error:
        raise ClientError(f"Invalid value: {error}") from error
    expected = list if form is PatchType.JSON else dict
    if not isinstance(wanted, expected):
        raise ClientError(f"Invalid value: a patch of type {form} is {'a list' if expected is list else 'an object'}")
    _change(kind, [name], namespace, lambda found: _patched(found, wanted), "patched", dry_run=dry_run)


def _patched(found: Object, patch: Any) -> Object:
    if isinstance(patch, dict):
        return dict(merged(found, patch))
    from jsonpath import JSONPatch, JSONPatchError, JSONPointerError

    try:
        patched: Any = JSONPatch(patch).apply(json.loads(json.dumps(found)))
    except (JSONPatchError, JSONPointerError) as error:
        raise ClientError(f"Invalid value: {error}") from error
    return dict(patched)


def _change(
    kind: str,
    names: Sequence[str],
    namespace: str,
    change: Callable[[Object], Object],
    word: str,
    *,
    dry_run: bool,
) -> None:
    noun = noun_of(kind)
    with client() as asked:
        for name in names:
            where = _where(noun, namespace)
            changed = change_object(asked, noun, where, name, change, dry_run=dry_run)
            outcome = word if changed else "unchanged"
            say(f"{noun.kind.lower()}/{name} {outcome}{' (dry run)' if dry_run else ''}")


Words = Annotated[
    list[str],
    typer.Argument(metavar="NAME... KEY=VALUE... KEY-...", help="Names, then values to set and keys to remove."),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Overwrite existing values.")]


def _label(
    kind: Kind, words: Words, namespace: Namespace = "", overwrite: Overwrite = False, dry_run: DryRun = False
) -> None:
    """Set labels of objects (key=value), or take them out (key-)."""
    _set_metadata("labels", "labeled", kind, words, namespace, overwrite, dry_run)


def _annotate(
    kind: Kind, words: Words, namespace: Namespace = "", overwrite: Overwrite = False, dry_run: DryRun = False
) -> None:
    """Set annotations of objects (key=value), or take them out (key-)."""
    _set_metadata("annotations", "annotated", kind, words, namespace, overwrite, dry_run)


def _set_metadata(
    field: str, word: str, kind: str, words: Sequence[str], namespace: str, overwrite: bool, dry_run: bool
) -> None:
    names, wanted = _names_and_values(words)

    def change(found: Object) -> Object:
        current: Mapping[str, str] = found["metadata"].get(field) or {}
        taken = [key for key, value in wanted.items() if value is not None and current.get(key, value) != value]
        if taken and not overwrite:
            raise ClientError(f'"{taken[0]}" already has a value ({current[taken[0]]}), and --overwrite is false')
        return dict(merged(found, {"metadata": {field: wanted}}))

    _change(kind, names, namespace, change, word, dry_run=dry_run)


def _names_and_values(words: Sequence[str]) -> tuple[list[str], dict[str, str | None]]:
    """Return the names, and for each key its new value or None."""
    names = [word for word in words if "=" not in word and not word.endswith("-")]
    values: dict[str, str | None] = {word[:-1]: None for word in words if word.endswith("-") and "=" not in word}
    values |= {key: value for key, mark, value in (word.partition("=") for word in words) if mark}
    if not names or not values:
        raise typer.BadParameter("give names, then key=value or key-")
    return names, values


def register(app: typer.Typer) -> None:
    """Add these commands."""
    app.command("edit")(_edit)
    app.command("patch")(_patch)
    app.command("label", context_settings={"ignore_unknown_options": False})(_label)
    app.command("annotate")(_annotate)
