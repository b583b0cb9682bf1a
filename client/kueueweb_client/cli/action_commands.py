"""hold, release, requeue, cancel, priority, cordon, uncordon, drain, preview, history, report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any, Final

import typer

from kueueweb_client import calls
from kueueweb_client.calls import Call
from kueueweb_client.cells import age
from kueueweb_client.cli import completion
from kueueweb_client.cli.files import Files, read, write_applied
from kueueweb_client.cli.session import Namespace, client, namespace_of, say, write_now, write_table
from kueueweb_client.documents import to_yaml
from kueueweb_client.errors import ApiError
from kueueweb_client.types import Key

_NOT_FOUND: Final = 404
_CONFLICT: Final = 409
_MISSING: Final = "NotFound"
Names = Annotated[list[str], typer.Argument(help="Workloads.", autocompletion=completion.workload_names)]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Preview the changes without making them.")]


class Form(StrEnum):
    """How an answer is written that is no list of objects."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


class ReportForm(StrEnum):
    """How a report is written."""

    CSV = "csv"
    JSON = "json"


def act(verb: str, word: str, namespace: str, names: Sequence[str], *, dry_run: bool = False, **more: Any) -> None:
    """Do something with workloads; raises `ApiError` with the first refusal once all others are done."""
    where = namespace_of(namespace)
    keys: list[Key] = [{"namespace": where, "name": name} for name in names]
    with client() as asked:
        done = asked.send(calls.act_on(verb, keys, dry_run=dry_run, **more))
    for key in done["changed"]:
        say(f"workload/{key['name']} {word}{' (dry run)' if dry_run else ''}")
    for skipped in done["skipped"]:
        status = _NOT_FOUND if skipped["reason"] == _MISSING else _CONFLICT
        raise ApiError(status, skipped["reason"], f"workload/{skipped['name']}: {skipped['message']}")


def _hold(names: Names, namespace: Namespace = "", dry_run: DryRun = False) -> None:
    """Evict workloads, and keep them from being admitted."""
    act("hold", "held", namespace, names, dry_run=dry_run)


def _release(names: Names, namespace: Namespace = "", dry_run: DryRun = False) -> None:
    """Let held workloads be admitted again."""
    act("release", "released", namespace, names, dry_run=dry_run)


def _requeue(names: Names, namespace: Namespace = "", dry_run: DryRun = False) -> None:
    """Evict workloads that hold quota; they wait again, and may start again at once."""
    act("requeue", "requeued", namespace, names, dry_run=dry_run)


def _cancel(names: Names, namespace: Namespace = "", dry_run: DryRun = False) -> None:
    """End workloads for good."""
    act("cancel", "cancelled", namespace, names, dry_run=dry_run)


def _priority(
    names: Names,
    namespace: Namespace = "",
    priority_class: Annotated[str, typer.Option("--class", help="A WorkloadPriorityClass.")] = "",
    value: Annotated[int | None, typer.Option("--value", help="A number, for admins of the namespace.")] = None,
    dry_run: DryRun = False,
) -> None:
    """Change the priority of workloads."""
    if bool(priority_class) == (value is not None):
        raise typer.BadParameter("give --class or --value", param_hint="--class")
    more = {"priority_class": priority_class} if priority_class else {"priority": value}
    act("priority", "re-prioritised", namespace, names, dry_run=dry_run, **more)


Places = Annotated[
    list[str],
    typer.Argument(metavar="NODE|device/UUID...", help="Nodes or devices.", autocompletion=completion.node_names),
]


def _set_places(places: Sequence[str], word: str, changes: dict[str, bool], dry_run: bool) -> None:
    with client() as asked:
        for place in places:
            kind, slash, name = place.rpartition("/")
            if kind not in ("", "node", "device"):
                raise typer.BadParameter(f'"{place}" is not NODE, node/NODE or device/UUID')
            noun = "devices" if kind == "device" else "nodes"
            asked.send(calls.patch(noun, name, changes=changes, dry_run=dry_run))
            say(f"{kind if slash else 'node'}/{name} {word}{' (dry run)' if dry_run else ''}")


def _cordon(places: Places, dry_run: DryRun = False) -> None:
    """Keep new workloads from nodes or devices."""
    _set_places(places, "cordoned", {"cordoned": True}, dry_run)


def _uncordon(places: Places, dry_run: DryRun = False) -> None:
    """Let workloads on nodes or devices again."""
    _set_places(places, "uncordoned", {"cordoned": False, "draining": False}, dry_run)


def _drain(places: Places, dry_run: DryRun = False) -> None:
    """Cordon nodes or devices, and evict the workloads that run there."""
    _set_places(places, "draining", {"cordoned": True, "draining": True}, dry_run)


def _preview(
    filename: Files,
    namespace: Namespace = "",
    effects: Annotated[
        bool, typer.Option("--effects", help="Include the scheduler's decisions after the change; for admins.")
    ] = False,
    delete: Annotated[bool, typer.Option("--delete", help="Preview the deletion of the objects.")] = False,
    output: Annotated[Form, typer.Option("--output", "-o", help="The output format.")] = Form.TABLE,
) -> None:
    """Show the consequences of manifests before they are applied; nothing is stored."""
    with client() as asked:
        text = to_yaml(*read(filename, namespace))
        found = asked.send(calls.preview(text, effects=effects or None, delete=delete or None))
    if output is Form.JSON:
        say(json.dumps(found, indent=4, ensure_ascii=False))
        return
    if output is Form.YAML:
        say(to_yaml(found).rstrip())
        return
    write_applied(found["result"])
    for workload in found["workloads"]:
        explanation = workload["explanation"] or {}
        state = ": ".join(part for part in (explanation.get("state"), explanation.get("message")) if part)
        say(f"workload/{workload['name']}: {state or 'no explanation'}")
        for cost in workload["costs"]:
            say("  " + ", ".join(f"{key} {value}" for key, value in cost.items()))
    if found["effects"]:
        say(to_yaml({"effects": found["effects"]}).rstrip())


def _history(
    name: Annotated[str, typer.Argument(help="A workload.", autocompletion=completion.workload_names)],
    namespace: Namespace = "",
    uid: Annotated[str, typer.Option("--uid", help="The uid, if several workloads had this name over time.")] = "",
) -> None:
    """Show the life of a workload and the scheduler's decisions on it, the oldest first; also after it was deleted."""
    where = namespace_of(namespace)
    given = {"uid": uid} if uid else {}
    chosen = {"workload_uid": uid} if uid else {"namespace": where, "workload": name}
    with client() as asked:
        events = list(asked.rows("workloads", where, name, "events", **given))
        decisions = list(asked.rows("decisions", **chosen))
    rows = [(row["at"], row["type"], row["reason"], row["message"], row["actor"] or "-") for row in events]
    for row in decisions:
        why = ": ".join(filter(None, (row["reason"], row["message"])))
        rows.append((row["decided_at"], "Decision", row["action"], why, "scheduler"))
    if not rows:
        raise ApiError(_NOT_FOUND, _MISSING, f"workload/{name} has no history in namespace {where}")
    table = [[at[:19] + "Z", age(at), *rest] for at, *rest in sorted(rows)]
    write_table(["TIME", "AGE", "TYPE", "REASON", "MESSAGE", "BY"], table)


def _report(
    kind: Annotated[str, typer.Argument(help="waits, usage, idle or preemptions")],
    by: Annotated[str, typer.Option(help="Group the rows by: namespace, user, cluster_queue, month ...")] = "",
    since: Annotated[
        str, typer.Option(help="Start of the period, such as 2026-01-31T12:00:00Z (default: 30 days ago).")
    ] = "",
    until: Annotated[str, typer.Option(help="Before this time.")] = "",
    output: Annotated[ReportForm, typer.Option("--output", "-o", help="The output format.")] = ReportForm.CSV,
) -> None:
    """Write a report of what was: waits, usage and its price, idle devices, preemptions."""
    given = {key: value for key, value in {"by": by, "since": since, "until": until}.items() if value}
    if output is ReportForm.CSV:
        given["format"] = "csv"
    with client() as asked:
        text = asked.send(Call("GET", calls.path("reports", kind), lambda found: found.text, given))
    write_now(text if output is ReportForm.CSV else json.dumps(json.loads(text), indent=4, ensure_ascii=False) + "\n")


def register(app: typer.Typer) -> None:
    """Add these commands."""
    for command in (_hold, _release, _requeue, _cancel, _priority, _cordon, _uncordon, _drain, _preview, _history):
        app.command(command.__name__.removeprefix("_"))(command)
    app.command("report")(_report)
