"""The options that all commands share, the client that they make, and the output of answers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from kueueweb_client.client import Client
from kueueweb_client.contexts import Context, current
from kueueweb_client.documents import to_yaml
from kueueweb_client.errors import ClientError
from kueueweb_client.nouns import Noun, columns, noun_named

out = Console(soft_wrap=True, highlight=False)
err = Console(stderr=True, soft_wrap=True, highlight=False)


class Output(StrEnum):
    """How objects are written."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


@dataclass
class Options:
    """The options before the command."""

    context: str = ""
    cluster: str = ""
    namespace: str = ""


options = Options()
Namespace = Annotated[str, typer.Option("--namespace", "-n", help="The namespace (default: the context's).")]
AllNamespaces = Annotated[bool, typer.Option("--all-namespaces", "-A", help="Every namespace that you may see.")]
OutputOption = Annotated[Output, typer.Option("--output", "-o", help="How to write it.")]


def context() -> Context:
    """The context of this call."""
    return current(options.context)


def client() -> Client:
    """A client for this call."""
    found = context()
    return Client(found.url, found.token, cluster=options.cluster or found.cluster, verify=found.ca_file or True)


def namespace_of(given: str) -> str:
    """The namespace that is meant. Raises `ClientError` where none is."""
    found = given or options.namespace or context().namespace
    if not found:
        raise ClientError(
            "Required value: a namespace. Give one with -n, or set it: kueueweb config set-namespace NAME."
        )
    return found


def noun_of(word: str) -> Noun:
    """The kind that a word means; a usage error for one that is not known."""
    noun = noun_named(word)
    if noun is None:
        raise typer.BadParameter(
            f'unsupported kind "{word}". Try: workload, clusterqueue, localqueue, cohort, resourceflavor, node, device'
        )
    return noun


def write_rows(noun: Noun, rows: Iterable[Mapping[str, Any]], output: Output, *, all_namespaces: bool = False) -> int:
    """Write a list in the shape that was asked for; returns the number of rows."""
    found = list(rows)
    if output is Output.JSON:
        out.print_json(json.dumps(found))
    elif output is Output.YAML:
        out.print(to_yaml(found), end="", markup=False)
    elif output is Output.NAME:
        for row in found:
            out.print(f"{noun.kind.lower()}/{row.get('name') or row.get('uuid')}", markup=False)
    else:
        shown = columns(noun, all_namespaces=all_namespaces, wide=output is Output.WIDE)
        write_table([title for title, _ in shown], [[cell(row) for _, cell in shown] for row in found])
    return len(found)


def write_table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table as kubectl writes it: no lines, columns as wide as their content."""
    table = Table(*titles, box=None, pad_edge=False, show_edge=False, header_style="bold")
    for column in table.columns:
        column.no_wrap, column.overflow = True, "ignore"
    for row in rows:
        table.add_row(*(cell.replace("[", r"\[") for cell in row))
    with_width = Console(
        width=max(out.width, 4000) if not out.is_terminal else 4000, soft_wrap=True, highlight=False, file=out.file
    )
    with_width.print(table, crop=False)


def say(text: str) -> None:
    """A line of the answer."""
    out.print(text, markup=False)


def warn(text: str) -> None:
    """A line beside the answer."""
    err.print(text, markup=False, style="yellow")
