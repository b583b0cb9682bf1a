"""The options that all commands share, the client that is created from them, and the output of answers."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kueueweb_client.contexts import Context, current
from kueueweb_client.documents import to_yaml
from kueueweb_client.errors import ClientError, ClosedOutput
from kueueweb_client.nouns import Noun, columns, noun_named

if TYPE_CHECKING:
    from kueueweb_client.client import Client


class Output(StrEnum):
    """How the answers of commands are written that are no lists of objects."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


@dataclass
class Options:
    """The options that every command takes, before its name or after."""

    context: str = ""
    cluster: str = ""
    namespace: str = ""


options = Options()
Namespace = Annotated[str, typer.Option("--namespace", "-n", help="The namespace (default: the context's).")]
AllNamespaces = Annotated[bool, typer.Option("--all-namespaces", "-A", help="Every namespace that you may see.")]
OutputOption = Annotated[Output, typer.Option("--output", "-o", help="The output format.")]


def context() -> Context:
    """Return the context of this call."""
    return current(options.context)


At = Annotated[str, typer.Option(help="Show an earlier state: a time with its zone, such as 2026-01-05T09:00:00Z.")]


def client(at: str = "") -> Client:
    """Return a client for this call; with `at`, it reads the state of that moment."""
    from kueueweb_client.client import Client  # importing an HTTP library takes longer than everything else together

    found = context()
    return Client(found.url, found.token, cluster=options.cluster or found.cluster, verify=found.ca_file or True, at=at)


def namespace_of(given: str) -> str:
    """Return the given namespace, or else the option's, or else the context's. Raises `ClientError` if none is set."""
    found = given or options.namespace or context().namespace
    if not found:
        raise ClientError(
            "Required value: a namespace. Give one with -n, or set it: kueueweb config set-namespace NAME."
        )
    return found


def noun_of(word: str) -> Noun:
    """Return the kind with this name, plural or short name. Raises a usage error for an unknown one."""
    noun = noun_named(word)
    if noun is None:
        raise typer.BadParameter(f'unsupported kind "{word}". `kueueweb api-resources` lists the kinds')
    return noun


def names_of(noun: Noun, name: str, namespace: str) -> tuple[str, ...]:
    """Return the parts of an object's address: its namespace, if its kind has namespaces, and its name."""
    return (namespace_of(namespace), name) if noun.namespaced else (name,)


def write_rows(noun: Noun, rows: Iterable[Mapping[str, Any]], output: Output, *, all_namespaces: bool = False) -> int:
    """Write a list of REST's rows in the requested format; return the number of rows."""
    found = list(rows)
    if output is Output.JSON:
        say(json.dumps(found, indent=2, ensure_ascii=False))
    elif output is Output.YAML:
        say(to_yaml(found).rstrip())
    elif output is Output.NAME:
        for row in found:
            say(f"{noun.kind.lower()}/{row.get('name') or row.get('uuid')}")
    else:
        shown = columns(noun, all_namespaces=all_namespaces, wide=output is Output.WIDE)
        write_table([title for title, _ in shown], [[cell(row) for _, cell in shown] for row in found])
    return len(found)


def write_table(titles: Sequence[str], rows: Iterable[Sequence[str]], *, with_headers: bool = True) -> None:
    """Write a table as kubectl does: no lines, columns as wide as their content."""
    from kueueweb_client.cli.printing import Table

    Table(titles, with_headers=with_headers).write(rows)


def say(text: str) -> None:
    """Write a line of the answer."""
    write(text + "\n")


def write(text: str) -> None:
    """Write a part of the answer. Raises `ClosedOutput` when its reader has stopped reading."""
    try:
        sys.stdout.write(text)
    except BrokenPipeError:
        raise ClosedOutput from None


def write_now(text: str) -> None:
    """Write a part of the answer at once, so that its reader has it before the next request."""
    write(text)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise ClosedOutput from None


def warn(text: str) -> None:
    """Print a line in addition to the answer."""
    typer.secho(text, err=True, fg="yellow")
