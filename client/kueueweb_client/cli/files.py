"""apply, diff, delete: commands on manifest files."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kueueweb_client import calls
from kueueweb_client.cli.session import Namespace, client, namespace_of, noun_of, say, warn
from kueueweb_client.documents import all_of_yaml, to_yaml
from kueueweb_client.errors import ApiError, ClientError
from kueueweb_client.nouns import noun_named
from kueueweb_client.types import ApplyResult

if TYPE_CHECKING:
    from kueueweb_client.client import Client

_SUFFIXES: Final = (".yaml", ".yml", ".json")
_NOT_FOUND: Final = 404
_NOT_ALLOWED: Final = 405
Recursive = Annotated[bool, typer.Option("--recursive", "-R", help="Include folders within folders.")]
Kustomize = Annotated[str, typer.Option("--kustomize", "-k", help="A folder that kustomize or kubectl builds.")]
Files = Annotated[
    list[str],
    typer.Option("--filename", "-f", help="A file, a folder, or - for standard input; may be given several times."),
]


def texts(names: list[str], *, recursive: bool = False) -> Iterator[tuple[str, str]]:
    """Return each file's name and text; with `recursive`, also of nested folders. Raises `ClientError` for a missing
    file."""
    for name in names:
        if name == "-":
            yield "standard input", sys.stdin.read()
            continue
        path = Path(name)
        if not path.exists():
            raise ClientError(f"{name}: no such file or folder")
        inside = path.rglob("*") if recursive else path.glob("*")
        found = sorted(file for file in inside if file.suffix in _SUFFIXES) if path.is_dir() else [path]
        if not found:
            raise ClientError(f"{name}: no {', '.join(_SUFFIXES)} file in this folder; -R also reads nested folders")
        for file in found:
            yield str(file), file.read_text(encoding="utf-8")


def documents(names: list[str], *, recursive: bool = False, kustomize: str = "") -> list[Mapping[str, Any]]:
    """Read all objects of the files, with Lists unpacked. Raises `ClientError` for text that is not YAML."""
    import yaml

    found: list[Mapping[str, Any]] = []
    built = [(kustomize, _built(kustomize))] if kustomize else []
    for source, text in (*built, *texts(names, recursive=recursive)):
        try:
            for document in all_of_yaml(text):
                if document is None:
                    continue
                if not isinstance(document, Mapping) or "kind" not in document:
                    raise ClientError(f"{source}: Required value: kind")
                found += document["items"] if document["kind"] == "List" else [document]
        except yaml.YAMLError as error:
            raise ClientError(f"{source}: {error}") from error
    return found


def _built(folder: str) -> str:
    """Return the manifests that kustomize makes of a folder. Raises `ClientError` if it is not installed, or fails."""
    import shutil
    import subprocess

    command = next(
        (words for words in (["kustomize", "build"], ["kubectl", "kustomize"]) if shutil.which(words[0])), None
    )
    if command is None:
        raise ClientError("-k: neither kustomize nor kubectl is installed. Install one, or pipe its output into -f -.")
    ran = subprocess.run([*command, folder], capture_output=True, text=True, check=False)  # noqa: S603
    if ran.returncode:
        raise ClientError(f"{' '.join(command)} {folder} failed: {ran.stderr.strip()}")
    return ran.stdout


def _with_namespace(document: Mapping[str, Any], namespace: str) -> Mapping[str, Any]:
    """Return the object with the namespace of the call, where it has none and its kind has one."""
    noun = noun_named(document["kind"])
    metadata = document.get("metadata") or {}
    if not namespace or metadata.get("namespace") or (noun and not noun.namespaced):
        return document
    return {**document, "metadata": {**metadata, "namespace": namespace}}


def read(names: list[str], namespace: str, *, recursive: bool = False, kustomize: str = "") -> list[Mapping[str, Any]]:
    """Read all objects of the files, each with the namespace of the call if it needs one and has none."""
    if not (names or kustomize):
        raise typer.BadParameter("give files with -f, or a folder with -k", param_hint="--filename")
    found = documents(names, recursive=recursive, kustomize=kustomize)
    return [_with_namespace(document, namespace) for document in found]


def write_applied(result: ApplyResult) -> None:
    """Write a line for each object, as kubectl does."""
    suffix = " (dry run)" if result["dry_run"] else ""
    for applied in result["objects"]:
        say(f"{applied['kind'].lower()}/{applied['name']} {applied['outcome']}{suffix}")
    for warning in result["warnings"]:
        warn(f"warning: {warning['kind'].lower()}/{warning['name']}: {warning['message']}")
    for skipped in result["skipped"]:
        warn(f"skipped: document {skipped['document']} ({skipped['kind'] or 'no kind'}): {skipped['message']}")


SomeFiles = Annotated[
    list[str] | None,
    typer.Option("--filename", "-f", help="A file, a folder, or - for standard input; may be given several times."),
]


def _apply(
    filename: SomeFiles = None,
    kustomize: Kustomize = "",
    recursive: Recursive = False,
    namespace: Namespace = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Validate and show the changes without storing them.")
    ] = False,
    applied_set: Annotated[str, typer.Option("--set", help="A name for the applied objects, for --prune.")] = "",
    prune: Annotated[
        bool,
        typer.Option("--prune", help="Remove objects of --set that are no longer in the files."),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="With --prune: end workloads that hold quota, too.")] = False,
    skip_unsupported: Annotated[
        bool, typer.Option("--skip-unsupported", help="Skip documents of unsupported kinds.")
    ] = False,
) -> None:
    """Store the objects of manifests: all of them or, if one has a mistake, none."""
    if prune and not applied_set:
        raise typer.BadParameter("--prune needs --set", param_hint="--prune")
    chosen = {
        "dry_run": dry_run or None,
        "set": applied_set or None,
        "prune": prune or None,
        "force": force or None,
        "skip_unsupported": skip_unsupported or None,
    }
    with client() as asked:
        found = read(filename or [], namespace, recursive=recursive, kustomize=kustomize)
        write_applied(asked.apply(to_yaml(*found), **chosen))


def _diff(
    filename: SomeFiles = None, kustomize: Kustomize = "", recursive: Recursive = False, namespace: Namespace = ""
) -> None:
    """Show the changes that an apply would make; exit code 1 if there are any."""
    differs = False
    found = read(filename or [], namespace, recursive=recursive, kustomize=kustomize)
    wanted = {_identity(document): document for document in found}
    with client() as asked:
        result = asked.apply(to_yaml(*found), dry_run=True)
        for applied in result["objects"]:
            if applied["outcome"] == "unchanged":
                continue
            differs = True
            key = (applied["kind"], applied["namespace"], applied["name"])
            live = _live(asked, *key)
            name = "/".join(filter(None, key))
            lines = difflib.unified_diff(
                _lines(live), _lines(wanted.get(key)), f"live/{name}", f"files/{name}", lineterm=""
            )
            for line in lines:
                typer.secho(line, fg={"+": "green", "-": "red"}.get(line[:1]))
    if differs:
        raise typer.Exit(1)


def _identity(document: Mapping[str, Any]) -> tuple[str, str, str]:
    metadata = document.get("metadata") or {}
    return document["kind"], metadata.get("namespace", ""), metadata.get("name", "")


def _live(asked: Client, kind: str, namespace: str, name: str) -> Any:
    try:
        return asked.send(calls.manifest_objects(kind.lower(), *filter(None, (namespace, name))))
    except ApiError as error:
        if error.status == _NOT_FOUND:
            return None
        raise


def _lines(document: Any) -> list[str]:
    if document is None:
        return []
    return to_yaml(document, sort_keys=True).splitlines()


def _delete(
    kind: Annotated[str, typer.Argument(help="The kind; with -f, give neither a kind nor a name.")] = "",
    names: Annotated[list[str] | None, typer.Argument(help="The objects.")] = None,
    filename: Annotated[
        list[str] | None, typer.Option("--filename", "-f", help="Delete the objects in these files.")
    ] = None,
    namespace: Namespace = "",
    ignore_not_found: Annotated[
        bool, typer.Option("--ignore-not-found", help="Treat an object that does not exist as success.")
    ] = False,
    recursive: Recursive = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Validate the deletion without deleting.")] = False,
) -> None:
    """Delete objects. An object that is in use is deleted once nothing uses it."""
    keys: list[tuple[str, str, str]] = []
    if filename:
        keys = [
            _identity(_with_namespace(document, namespace))
            for document in reversed(documents(filename, recursive=recursive))
        ]
    elif kind and names:
        noun = noun_of(kind)
        keys = [(noun.kind, namespace_of(namespace) if noun.namespaced else "", name) for name in names]
    else:
        raise typer.BadParameter("give a kind and names, or files with -f")
    with client() as asked:
        for found_kind, found_namespace, name in keys:
            _delete_one(asked, (found_kind, found_namespace, name), ignore_not_found=ignore_not_found, dry_run=dry_run)


def _delete_one(asked: Client, key: tuple[str, str, str], *, ignore_not_found: bool, dry_run: bool) -> None:
    kind, namespace, name = key
    noun = noun_named(kind)
    parts = tuple(filter(None, (namespace, name)))
    try:
        gone = _delete_call(asked, kind, noun.path if noun else "", parts, dry_run)
    except ApiError as error:
        if error.status == _NOT_FOUND and ignore_not_found:
            return
        raise
    outcome = "deleted" if gone else "is being deleted; it will be removed when nothing uses it"
    say(f'{kind.lower()} "{name}" {outcome}{" (dry run)" if dry_run else ""}')


def _delete_call(asked: Client, kind: str, path: str, parts: tuple[str, ...], dry_run: bool) -> bool:
    """Delete at the kind's own address, and where that takes no DELETE, as a manifest."""
    if path:
        try:
            return asked.send(calls.delete(path, *parts, dry_run=dry_run))
        except ApiError as error:
            if error.status != _NOT_ALLOWED:
                raise
    return asked.send(calls.delete("manifests", kind.lower(), *parts, dry_run=dry_run))


def register(app: typer.Typer) -> None:
    """Add these commands."""
    app.command("apply")(_apply)
    app.command("diff")(_diff)
    app.command("delete")(_delete)
