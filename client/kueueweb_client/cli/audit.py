"""audit: who did what."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import islice
from typing import Annotated, Any, Final

import typer

from kueueweb_client.cli.session import Namespace, Output, OutputOption, client, say, write_table
from kueueweb_client.documents import to_yaml

_DEFAULT_LIMIT: Final = 50


def _audit(
    user: Annotated[str, typer.Option("--user", "-u", help="Records of this user.")] = "",
    verb: Annotated[str, typer.Option(help="create, update, delete, login, logout, failed-login or refused.")] = "",
    kind: Annotated[str, typer.Option(help="A kind, such as clusterqueue.")] = "",
    name: Annotated[str, typer.Option(help="An object's name.")] = "",
    namespace: Namespace = "",
    since: Annotated[str, typer.Option(help="Only records from this time on, such as 2026-01-31T12:00:00Z.")] = "",
    until: Annotated[str, typer.Option(help="Before this time.")] = "",
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of records.")] = _DEFAULT_LIMIT,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show who changed what, when and from where: the newest first. For cluster admins and auditors."""
    given = {
        "username": user, "verb": verb, "kind": kind, "name": name, "namespace": namespace, "since": since,
        "until": until,
    }  # fmt: skip
    with client() as asked:
        found = asked.rows("audit", **{key: value for key, value in given.items() if value})
        rows = list(islice(found, limit))
    if output is Output.JSON:
        say(json.dumps(rows, indent=2, ensure_ascii=False))
    elif output is Output.YAML:
        say(to_yaml(rows).rstrip())
    else:
        wide = output is Output.WIDE
        titles = ["TIME", "USER", "FROM", "VERB", "OBJECT", "CHANGE", *(["REASON", "REQUEST"] if wide else [])]
        write_table(titles, [_cells(row, wide) for row in rows])


def _cells(row: Mapping[str, Any], wide: bool) -> list[str]:
    found = "/".join(part for part in (row["kind"], row["namespace"], row["name"]) if part)
    cells = [row["at"][:19] + "Z", row["username"] or "-", row["address"] or row["process"], row["verb"], found]
    cells.append(row["message"] or _change(row))
    return [*cells, row["reason"] or "-", f"{row['request']} {row['request_id']}".strip() or "-"] if wide else cells


def _change(row: Mapping[str, Any]) -> str:
    """Return the changes of an edit as `field: old -> new`."""
    before, after = row["before"], row["after"]
    if before is None or after is None:
        return "-"
    return ", ".join(
        f"{key}: {json.dumps(before.get(key))} -> {json.dumps(after.get(key))}" for key in {**before, **after}
    )


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command("audit")(_audit)
