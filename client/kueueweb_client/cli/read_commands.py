"""get, describe, top."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Annotated, Any, Final

import typer

from kueueweb_client import calls
from kueueweb_client.cli.session import (
    AllNamespaces,
    Namespace,
    Output,
    OutputOption,
    client,
    namespace_of,
    noun_of,
    out,
    say,
    write_rows,
    write_table,
)
from kueueweb_client.client import Client
from kueueweb_client.nouns import Noun, age

_WATCH_SECONDS: Final = 2.0


def _get(
    kind: Annotated[
        str, typer.Argument(help="workload, clusterqueue, localqueue, cohort, resourceflavor, node, device ...")
    ],
    name: Annotated[str, typer.Argument(help="One object; without it, all.")] = "",
    namespace: Namespace = "",
    all_namespaces: AllNamespaces = False,
    output: OutputOption = Output.TABLE,
    selector: Annotated[
        str, typer.Option("--selector", "-l", help="key=value,...: only objects with these labels.")
    ] = "",
    status: Annotated[str, typer.Option(help="Workloads in these states, separated by commas.")] = "",
    clusterqueue: Annotated[
        str, typer.Option("--clusterqueue", "-c", help="Workloads or LocalQueues of this ClusterQueue.")
    ] = "",
    localqueue: Annotated[str, typer.Option("--localqueue", "-q", help="Workloads of this LocalQueue.")] = "",
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Write rows again as they change, until Ctrl-C.")
    ] = False,
) -> None:
    """List objects, or one of them. -o yaml of one object is its manifest, which applies again unchanged."""
    noun = noun_of(kind)
    wanted = _labels(selector)
    filters = {"status": status or None, "cluster_queue": clusterqueue or None, "local_queue": localqueue or None}
    with client() as asked:
        if name and output is Output.YAML:
            say(asked.send(calls.manifests(noun.kind.lower(), *_names(noun, name, namespace))).rstrip())
            return
        if name and watch and noun.path == "workloads":
            for state in asked.watch(*_names(noun, name, namespace)):
                if _has(state, wanted):
                    write_rows(noun, [state], output, all_namespaces=all_namespaces)
            return
        seen: dict[str, str] = {}
        while True:
            rows = [row for row in _rows(asked, noun, name, namespace, all_namespaces, filters) if _has(row, wanted)]
            changed = [row for row in rows if seen.get(_key(row)) != _said(row)]
            if changed or not seen:
                write_rows(noun, changed, output, all_namespaces=all_namespaces)
            seen = {_key(row): _said(row) for row in rows} or {"": ""}
            if not watch:
                return
            time.sleep(_WATCH_SECONDS)


def _rows(
    asked: Client, noun: Noun, name: str, namespace: str, all_namespaces: bool, filters: Mapping[str, Any]
) -> list[Mapping[str, Any]]:
    if name:
        return [asked.read(noun.path, *_names(noun, name, namespace))]
    where = namespace_of(namespace) if noun.namespaced and not all_namespaces else None
    given = {key: value for key, value in filters.items() if value}
    if noun.path != "workloads" and given.keys() - ({"cluster_queue"} if noun.path == "local-queues" else set()):
        raise typer.BadParameter(f"{', '.join(sorted(given))} does not filter {noun.path}")
    if where and noun.filters_namespace:
        given["namespace"] = where
    return [row for row in asked.rows(noun.path, **given) if not where or row.get("namespace") == where]


def _names(noun: Noun, name: str, namespace: str) -> tuple[str, ...]:
    return (namespace_of(namespace), name) if noun.namespaced else (name,)


def _labels(selector: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in selector.split(",") if part]
    if any(not mark for _, mark, _ in pairs):
        raise typer.BadParameter(f'"{selector}" is not key=value,...', param_hint="--selector")
    return {key: value.removeprefix("=") for key, _, value in pairs}


def _has(row: Mapping[str, Any], wanted: Mapping[str, str]) -> bool:
    return wanted.items() <= (row.get("labels") or {}).items()


def _key(row: Mapping[str, Any]) -> str:
    return f"{row.get('namespace', '')}/{row.get('name') or row.get('uuid')}"


def _said(row: Mapping[str, Any]) -> str:
    return repr(sorted(row.items(), key=lambda item: item[0]))


def _describe(kind: str, name: str, namespace: Namespace = "") -> None:
    """Everything about one object; of a workload also its conditions, devices and events."""
    noun = noun_of(kind)
    names = _names(noun, name, namespace)
    with client() as asked:
        row = asked.read(noun.path, *names)
        _describe_fields(row)
        if noun.path == "workloads":
            say("Events:")
            write_table(
                ["  AGE", "TYPE", "REASON", "MESSAGE", "BY"],
                [
                    [f"  {age(event['at'])}", event["type"], event["reason"], event["message"], event["actor"] or "-"]
                    for event in asked.events(*names)
                ],
            )


def _describe_fields(row: Mapping[str, Any], indent: str = "") -> None:
    for key, value in row.items():
        title = key.replace("_", " ").capitalize()
        if value in (None, "", [], {}):
            continue
        if isinstance(value, Mapping):
            say(f"{indent}{title}:")
            _describe_fields(value, f"{indent}  ")
        elif isinstance(value, list) and all(isinstance(item, Mapping) for item in value):
            say(f"{indent}{title}:")
            for item in value:
                say(f"{indent}  -")
                _describe_fields(item, f"{indent}    ")
        elif isinstance(value, list):
            say(f"{indent}{title}: {', '.join(map(str, value))}")
        else:
            say(f"{indent}{title}: {value}")


def _top(
    kind: Annotated[str, typer.Argument(help="nodes, devices or queues")] = "nodes", output: OutputOption = Output.TABLE
) -> None:
    """Show current usage: devices by node or one by one, or quota by queue, flavor and resource."""
    with client() as asked:
        if kind in ("queue", "queues", "cq", "clusterqueues"):
            tree = asked.read("cohorts", "tree")
            write_table(
                ["CLUSTERQUEUE", "COHORT", "FLAVOR", "RESOURCE", "USED", "NOMINAL", "BORROWED", "SHARE"],
                sorted(_usage(tree)),
            )
            return
        noun = noun_of(kind)
        if noun.path not in ("nodes", "devices"):
            raise typer.BadParameter("top knows nodes, devices and queues")
        rows = sorted(asked.rows(noun.path), key=_memory_used, reverse=True)
        write_rows(noun, rows, output)


def _memory_used(row: Mapping[str, Any]) -> int:
    return int(row["device_totals"]["used_memory_mib"] if "device_totals" in row else row["used_memory_mib"])


def _usage(tree: Mapping[str, Any]) -> list[list[str]]:
    found = [
        [
            queue["name"],
            queue["cohort"] or "-",
            cell["flavor"],
            cell["resource"],
            _amount(cell["resource"], cell["used"]),
            _amount(cell["resource"], cell["nominal"]),
            _amount(cell["resource"], cell["borrowed"]),
            str(queue["weighted_share"]),
        ]
        for queue in tree["cluster_queues"]
        for cell in queue["usage"]
    ]
    return found + [row for cohort in tree["cohorts"] for row in _usage(cohort)]


def _amount(resource: str, amount: int) -> str:
    """An amount in base units as people write it: cpu from milli, memory from bytes."""
    if resource == "cpu":
        return f"{amount / 1000:g}"
    if resource in ("memory", "ephemeral-storage"):
        return f"{amount / 2**30:.4g}Gi"
    return str(amount)


def _overview() -> None:
    """The cluster in a few lines: health, totals and why workloads wait."""
    with client() as asked:
        found = asked.read("overview")
    for part in ("health", "totals"):
        say(f"{part.capitalize()}:")
        _describe_fields(found[part], "  ")
    if found["pending_by_reason"]:
        say("Pending by reason:")
        for item in found["pending_by_reason"]:
            out.print("  " + "  ".join(str(value) for value in item.values()), markup=False)


def register(app: typer.Typer) -> None:
    """Add these commands."""
    app.command("get")(_get)
    app.command("list", hidden=True)(_get)
    app.command("describe")(_describe)
    app.command("top")(_top)
    app.command("overview")(_overview)
