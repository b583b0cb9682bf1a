"""get, describe, top, headroom, overview, api-resources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kueueweb_client.cells import Row, age, is_active
from kueueweb_client.cli import completion
from kueueweb_client.cli.printing import Format, Printer, name_of, printer, read_format
from kueueweb_client.cli.reading import STATUSES, Reader, Selection, changes, check_filters
from kueueweb_client.cli.session import (
    AllNamespaces,
    At,
    Namespace,
    Output,
    OutputOption,
    client,
    names_of,
    namespace_of,
    noun_of,
    say,
    warn,
    write_rows,
    write_table,
)
from kueueweb_client.errors import ApiError, ClientError
from kueueweb_client.nouns import ALL, CLUSTER_QUEUES, EVENTS, LOCAL_QUEUES, NOUNS, PODS, WORKLOADS, Noun, Source
from kueueweb_client.past_nouns import past_noun

if TYPE_CHECKING:
    from kueueweb_client.client import Client

_NOT_FOUND: Final = 404
Target = tuple[Noun, Sequence[str]]
"""A kind, and the names of the objects that are wanted; none: all."""


def _get(
    kinds: Annotated[
        list[str],
        typer.Argument(
            metavar="KIND[,KIND...] [NAME...] | KIND/NAME...",
            help="Kinds separated by commas, and names; or `all`: queues, jobs and workloads.",
            autocompletion=completion.kinds_and_names,
        ),
    ],
    namespace: Namespace = "",
    all_namespaces: AllNamespaces = False,
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", help="table, wide, json, yaml, name, jsonpath=TEMPLATE or custom-columns=TITLE:PATH,..."
        ),
    ] = "table",
    selector: Annotated[
        str,
        typer.Option("--selector", "-l", help="key, !key, key=value, key!=value or key in (a,b), separated by commas."),
    ] = "",
    field_selector: Annotated[
        str, typer.Option("--field-selector", help="field=value or field!=value, by commas.")
    ] = "",
    status: Annotated[
        str, typer.Option(help=f"Workloads in these states, separated by commas: {', '.join(STATUSES)}.")
    ] = "",
    clusterqueue: Annotated[
        str, typer.Option("--clusterqueue", "-c", help="Workloads or LocalQueues of this ClusterQueue.")
    ] = "",
    localqueue: Annotated[str, typer.Option("--localqueue", "-q", help="Workloads of this LocalQueue.")] = "",
    user: Annotated[str, typer.Option("--user", "-u", help="Workloads that this user submitted.")] = "",
    active: Annotated[
        bool | None,
        typer.Option("--active/--inactive", help="Only queues that admit workloads, or only queues that admit none."),
    ] = None,
    of: Annotated[
        str, typer.Option("--for", help="Pods or events of workload/NAME or job/NAME, or pods of node/NAME.")
    ] = "",
    limit: Annotated[int, typer.Option(min=0, help="Maximum number of objects of each kind (0: all).")] = 0,
    chunk_size: Annotated[int, typer.Option(min=0, help="Objects per request (0: all).")] = 500,
    sort_by: Annotated[str, typer.Option(help="A field, as in .metadata.creationTimestamp.")] = "",
    no_headers: Annotated[bool, typer.Option("--no-headers", help="Omit the column titles.")] = False,
    show_labels: Annotated[bool, typer.Option("--show-labels", help="Add a column with the labels.")] = False,
    ignore_not_found: Annotated[
        bool, typer.Option("--ignore-not-found", help="Treat an object that does not exist as success.")
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Print objects again whenever they change, until Ctrl-C.")
    ] = False,
    at: At = "",
) -> None:
    """List objects, page after page, or some by their names. -o yaml is manifests, which apply again unchanged."""
    if at and watch:
        raise ClientError("--at: Forbidden with --watch: an earlier state does not change")
    form, argument = read_format(output)
    targets = _targets(kinds)
    form_of_all = Format(
        form, argument, with_headers=not no_headers, with_labels=show_labels, with_namespace=all_namespaces
    )
    given = {
        "status": _statuses(status),
        "cluster_queue": clusterqueue,
        "local_queue": localqueue,
        "submitted_by": user,
    }
    filters = {key: value for key, value in given.items() if value}
    for noun, _ in targets:
        check_filters(noun, filters, of)
    if at:
        targets = [(past_noun(noun), names) for noun, names in targets]
        _require_metadata(field_selector)
    single = watch or (len(targets) == 1 and len(targets[0][1]) == 1)
    shown = printer(form_of_all, single=single, prefixed=len(targets) > 1)
    wanted = Selection(
        labels=selector, fields=field_selector, filters=filters, of=of, sort_by=sort_by, chunk=chunk_size, limit=limit
    )
    with client(at) as asked:
        for noun, names in targets:
            where = "" if all_namespaces or not noun.namespaced else namespace_of(namespace)
            try:
                _write(asked, noun, replace(wanted, namespace=where, names=names), shown, watch=watch, active=active)
            except ApiError as error:
                if error.status != _NOT_FOUND or not ignore_not_found or not names:
                    raise
    shown.end()
    if form_of_all.is_table and not shown.count:
        where = "" if all_namespaces or not any(noun.namespaced for noun, _ in targets) else namespace_of(namespace)
        warn(f"No resources found in {where} namespace." if where else "No resources found.")


def _targets(words: Sequence[str]) -> list[Target]:
    """Return the kinds and names of the arguments: `cq,lq`, `cq main`, `cq/main lq/queue`, `all`."""
    if any("/" in word for word in words):
        pairs = [word.partition("/") for word in words]
        if any(not (kind and name) for kind, _, name in pairs):
            raise typer.BadParameter("give KIND/NAME for each object, or one kind and names")
        return [(noun_of(kind), [name]) for kind, _, name in pairs]
    first, *names = words
    kinds = list(dict.fromkeys(each for each in first.split(",") if each))
    nouns = [noun for kind in kinds for noun in (ALL if kind == "all" else [noun_of(kind)])]
    if not nouns:
        raise typer.BadParameter("Required value: a kind")
    return [(noun, names) for noun in nouns]


def _require_metadata(field_selector: str) -> None:
    """Raise `ClientError` for a field that rows of an earlier state do not have."""
    for part in filter(None, field_selector.split(",")):
        if not part.strip().startswith("metadata."):
            raise ClientError(
                f'--field-selector: Unsupported value: "{part.strip()}": with --at, supported fields are metadata.name '
                "and metadata.namespace"
            )


def _statuses(text: str) -> str:
    """Return the states in the server's words, in any case. Raises `ClientError` for another word."""
    known = {each.lower(): each for each in STATUSES}
    asked = [each.strip().lower() for each in text.split(",") if each.strip()]
    if unknown := [each for each in asked if each not in known]:
        raise ClientError(f'Unsupported value: "{unknown[0]}": supported values: {", ".join(STATUSES)}')
    return ",".join(known[each] for each in asked)


def _write(
    asked: Client, noun: Noun, selection: Selection, shown: Printer, *, watch: bool, active: bool | None
) -> None:
    if active is not None and noun.kind not in (CLUSTER_QUEUES.kind, LOCAL_QUEUES.kind):
        raise ClientError(f"Forbidden: --active does not filter {noun.plural}")
    for number, page in enumerate(_pages(asked, noun, selection, for_table=shown.form.is_table, watch=watch)):
        found = [item for item in page if active is None or is_active(item) is active]
        shown.page(noun, found)
        if not number and not asked.is_past:
            completion.remember(asked, noun, selection.namespace, [name_of(item) for item in found])


def _pages(asked: Client, noun: Noun, selection: Selection, *, for_table: bool, watch: bool) -> Iterator[Sequence[Row]]:
    """Yield the pages of a list; with `watch` also each change, of one workload until it ends."""
    if not watch:
        yield from Reader(asked, noun, selection, for_table=for_table).pages()
    elif noun is WORKLOADS and len(selection.names) == 1 and for_table:
        for state in asked.watch(selection.namespace, selection.names[0]):
            yield [state]
    else:
        for name in selection.names:
            field = f"metadata.name={name}"
            selection = replace(selection, names=(), fields=",".join(filter(None, (selection.fields, field))))
        yield from changes(asked, noun, selection, for_table=for_table)


def _describe(
    kind: Annotated[str, typer.Argument(help="A kind.", autocompletion=completion.kinds_and_names)],
    name: Annotated[str, typer.Argument(help="The object.", autocompletion=completion.kinds_and_names)],
    namespace: Namespace = "",
) -> None:
    """Everything about one object; of a workload also its conditions, devices and events."""
    noun = noun_of(kind)
    with client() as asked:
        names = names_of(noun, name, namespace)
        if noun.path and noun not in (PODS, EVENTS):
            _describe_fields(asked.read(noun.path, *names))
        else:
            selection = Selection(namespace=names[0] if noun.namespaced else "", names=[name])
            for page in Reader(asked, noun, selection, for_table=False).pages():
                for item in page:
                    _describe_fields(item)
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
    kind: Annotated[str, typer.Argument(help="nodes, devices or queues")] = "nodes",
    output: OutputOption = Output.TABLE,
    at: At = "",
) -> None:
    """Show usage, now or at an earlier time: devices by node or one by one, or quota by queue, flavor and resource."""
    with client(at) as asked:
        if kind in ("queue", "queues", "cq", "clusterqueues"):
            tree = asked.read("cohorts", "tree")
            write_table(
                ["CLUSTERQUEUE", "COHORT", "FLAVOR", "RESOURCE", "USED", "NOMINAL", "BORROWED", "SHARE"],
                sorted(_usage(tree)),
            )
            return
        noun = noun_of(kind)
        if noun.path not in ("nodes", "devices"):
            raise typer.BadParameter("top supports nodes, devices and queues")
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
    """Return an amount in base units as people write it: cpu from milli, memory from bytes."""
    if resource == "cpu":
        return f"{amount / 1000:g}"
    if resource in ("memory", "ephemeral-storage"):
        return f"{amount / 2**30:.4g}Gi"
    return str(amount)


def _headroom(
    queue: Annotated[str, typer.Argument(help="A LocalQueue; without one, all to which you may submit.")] = "",
    namespace: Namespace = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """Show what you may still use, by free quota and limits: of each LocalQueue, with -o wide also of each level."""
    with client() as asked:
        found = asked.read("headroom", namespace=namespace_of(namespace) if namespace or queue else "")
    rows = [row for row in found["results"] if queue in ("", row["name"])]
    if queue and not rows:
        raise ClientError(
            f"Not found: no LocalQueue {queue} in namespace {namespace_of(namespace)} takes your workloads."
        )
    if found["truncated"]:
        warn("There are more LocalQueues: name a namespace with -n.")
    if output in (Output.JSON, Output.YAML, Output.NAME):
        write_rows(LOCAL_QUEUES, rows, output)
        return
    titles = ["NAMESPACE", "LOCALQUEUE", "LEVEL", "RESOURCE", "FREE", "QUOTA-FREE", "LIMIT-FREE", "WORKLOADS"]
    write_table(titles, [line for row in rows for line in _headroom_lines(row, levels=output is Output.WIDE)])
    for row in rows:
        if not row["active"]:
            warn(f"{row['namespace']}/{row['name']}: {row['message']}")


def _headroom_lines(row: Mapping[str, Any], *, levels: bool) -> Iterator[list[str]]:
    """Yield the lines of a LocalQueue: one for each resource, and for each resource of each level."""
    parts = [("-", row), *((level["level"], level) for level in row["levels"] if levels)]
    for name, part in parts:
        workloads = "-" if part["workloads"] is None else str(part["workloads"])
        for each in part["resources"]:
            amounts = [each.get("free"), each["quota_free"], each["user_free"]]
            shown = ["-" if amount is None else _amount(each["resource"], amount) for amount in amounts]
            yield [row["namespace"], row["name"], name, each["resource"], *shown, workloads]


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
            say("  " + "  ".join(str(value) for value in item.values()))


def _api_resources(
    no_headers: Annotated[bool, typer.Option("--no-headers", help="Omit the column titles.")] = False,
) -> None:
    """List the kinds and the words for them."""
    rows = [
        [
            noun.plural,
            ",".join(word for word in noun.words[1:] if word not in (noun.kind.lower(), noun.path)) or "-",
            str(noun.namespaced).lower(),
            noun.kind,
            {Source.WIRE: "get,watch,edit,apply,delete", Source.MANIFESTS: "get,edit,apply,delete"}.get(
                noun.source, "get"
            ),
        ]
        for noun in sorted(NOUNS, key=lambda noun: noun.plural)
    ]
    write_table(["NAME", "WORDS", "NAMESPACED", "KIND", "VERBS"], rows, with_headers=not no_headers)


def register(app: typer.Typer) -> None:
    """Add these commands."""
    app.command("get")(_get)
    app.command("list", hidden=True)(_get)
    app.command("describe")(_describe)
    app.command("top")(_top)
    app.command("headroom")(_headroom)
    app.command("overview")(_overview)
    app.command("api-resources")(_api_resources)
