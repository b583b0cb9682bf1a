"""logs: the output of a workload's pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from kueueweb_client.cli.session import Namespace, client, namespace_of, say, write_now
from kueueweb_client.errors import ApiError, ClientError

if TYPE_CHECKING:
    from kueueweb_client.client import Client

_NOT_FOUND = 404


def _logs(
    name: Annotated[str, typer.Argument(help="A workload, or the job that owns it.")],
    namespace: Namespace = "",
    pod: Annotated[str, typer.Option(help="One of its pods (default: all; with -f the only one).")] = "",
    container: Annotated[
        str, typer.Option("--container", "-c", help="Required if a pod has more than one container.")
    ] = "",
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow the log until the container ends.")] = False,
    tail: Annotated[int, typer.Option(help="Number of last lines of each pod (-1: all).")] = -1,
    since: Annotated[str, typer.Option(help="Only lines from this time on, such as 2026-01-31T12:00:00Z.")] = "",
    timestamps: Annotated[bool, typer.Option("--timestamps", help="Begin each line with its time.")] = False,
    previous: Annotated[
        bool, typer.Option("--previous", "-p", help="The log of the container before its last restart.")
    ] = False,
) -> None:
    """Write the output of a workload's pods; each line names its pod where there are several."""
    if follow and previous:
        raise typer.BadParameter(
            "a container's log before its restart has ended: leave out -f", param_hint="--previous"
        )
    where = namespace_of(namespace)
    with client() as asked:
        workload = _workload(asked, where, name)
        pods = [pod] if pod else [row["name"] for row in asked.pods(where, workload)]
        if not pods:
            raise ClientError(f"workload/{workload} has no pods in the cluster")
        if follow and len(pods) > 1:
            raise typer.BadParameter(f"it has {len(pods)} pods: name one of {', '.join(pods)}", param_hint="--pod")
        wanted: dict[str, Any] = {"container": container, "since": since, "timestamps": timestamps}
        if previous:
            wanted["previous"] = True
        wanted["tail"] = None if tail < 0 else tail
        for each in pods:
            lines = (
                asked.follow_log(where, workload, each, **wanted)
                if follow
                else asked.log(where, workload, each, **wanted)
            )
            for line in lines:
                say(f"[{each}] {line}" if len(pods) > 1 else line)
                if follow:
                    write_now("")


def _workload(asked: Client, namespace: str, name: str) -> str:
    """Return the workload of that name, or else that of the job of that name."""
    try:
        return asked.workload(namespace, name)["name"]
    except ApiError as error:
        if error.status != _NOT_FOUND:
            raise
        for row in asked.workloads(namespace=namespace, search=name):
            if (row.get("owner") or {}).get("name") == name:
                return str(row["name"])
        raise


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("logs")(_logs)
