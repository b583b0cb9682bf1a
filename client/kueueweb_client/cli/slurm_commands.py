"""sbatch, squeue, scancel, sacct, sinfo, sprio: for users of Slurm."""

from __future__ import annotations

import getpass
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kueueweb_client import slurm_tables as tables
from kueueweb_client.cli.action_commands import act
from kueueweb_client.cli.files import write_applied
from kueueweb_client.cli.reading import workload_of_job
from kueueweb_client.cli.session import Namespace, client, context, namespace_of, say, warn, write_now
from kueueweb_client.documents import to_yaml
from kueueweb_client.errors import ApiError, ClientError
from kueueweb_client.slurm import job_of, jobs_before, read_options, read_script
from kueueweb_client.slurm_tables import Cell, Row

if TYPE_CHECKING:
    from kueueweb_client.client import Client

_MAX_PLACED: Final = 100
"""The maximum number of running workloads for which squeue requests the nodes."""
_QUEUE_FORMAT: Final = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
_START_FORMAT: Final = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %R"
_QUEUED: Final = "PD,CF,R,RQ"
_QUEUE_FIELDS: Final[Mapping[str, tuple[str, Cell]]] = {
    "i": ("JOBID", tables.job_name),
    "A": ("JOBID", tables.job_name),
    "P": ("PARTITION", lambda row: row["local_queue"]),
    "j": ("NAME", lambda row: row["name"]),
    "u": ("USER", lambda row: row["submitted_by"]),
    "a": ("ACCOUNT", lambda row: row["namespace"]),
    "t": ("ST", lambda row: tables.state(row)[0]),
    "T": ("STATE", lambda row: tables.state(row)[1]),
    "M": ("TIME", lambda row: tables.clock(tables.elapsed(row))),
    "D": ("NODES", lambda row: str(tables.pods(row))),
    "C": ("CPUS", lambda row: tables.amount(row, "cpu")),
    "b": ("TRES_PER_NODE", lambda row: f"gres/gpu:{tables.amount(row, 'nvidia.com/gpu')}"),
    "q": ("QOS", lambda row: row["priority_class"] or "normal"),
    "Q": ("PRIORITY", lambda row: str(row["priority"])),
    "r": ("REASON", lambda row: tables.why(row).strip("()") or "None"),
    "N": ("NODELIST", lambda row: row["nodes"]),
    "R": ("NODELIST(REASON)", lambda row: row["nodes"] or tables.why(row)),
    "V": ("SUBMIT_TIME", lambda row: tables.moment(row["created_at"])),
    "S": ("START_TIME", lambda row: tables.moment(start) if (start := _start_of(row)) else "N/A"),
}
_ACCOUNT_FIELDS: Final[Mapping[str, Cell]] = {
    "JobID": tables.job_name,
    "JobIDRaw": lambda row: row["uid"],
    "JobName": lambda row: row["name"],
    "Partition": lambda row: row["local_queue"],
    "Account": lambda row: row["namespace"],
    "User": lambda row: row["submitted_by"],
    "QOS": lambda row: row["priority_class"] or "normal",
    "Priority": lambda row: str(row["priority"]),
    "AllocCPUS": lambda row: tables.amount(row, "cpu"),
    "ReqCPUS": lambda row: tables.amount(row, "cpu"),
    "NNodes": lambda row: str(tables.pods(row)),
    "State": lambda row: tables.state(row)[1],
    "Submit": lambda row: tables.moment(row["created_at"]),
    "Start": lambda row: tables.moment(row["admitted_at"]),
    "End": lambda row: tables.moment(row["finished_at"]),
    "Elapsed": lambda row: tables.clock(tables.elapsed(row), padded=True),
    "Reason": lambda row: row["reason"] or "None",
}
_ACCOUNT_FORMAT: Final = "JobID,JobName,Partition,Account,AllocCPUS,State"
_INFO_FORMAT: Final = "%9P %.5a %.10l %.6D %.6t %N"
_INFO_TITLES: Final = {"P": "PARTITION", "a": "AVAIL", "l": "TIMELIMIT", "D": "NODES", "t": "STATE", "T": "STATE",
                       "N": "NODELIST", "G": "GRES"}  # fmt: skip
_MAX_RANKED: Final = 200
"""The maximum number of waiting workloads for which sprio and squeue --start request the explanation."""
_PRIORITY_FORMAT: Final = "%.18i %.9r %.10Y %.10A %.10F %.10J %.10P %.10Q %.8N %T"
_LONG_PRIORITY_FORMAT: Final = "%.18i %.9r %.8u %.10o %.10Y %.10S %.10A %.10B %.10F %.10J %.10P %.10n %.10Q %.8N %T"
_PRIORITY_FIELDS: Final[Mapping[str, tuple[str, Cell]]] = {
    "i": ("JOBID", tables.job_name),
    "r": ("PARTITION", lambda row: row["local_queue"]),
    "u": ("USER", lambda row: row["submitted_by"]),
    "o": ("ACCOUNT", lambda row: row["namespace"]),
    "Y": ("PRIORITY", lambda row: str(row["factors"]["priority"])),
    "S": ("SITE", lambda row: tables.rounded(row["factors"]["site"])),
    "A": ("AGE", lambda row: tables.rounded(row["factors"]["age"])),
    "B": ("ASSOC", lambda row: tables.rounded(row["factors"]["association"])),
    "F": ("FAIRSHARE", lambda row: tables.rounded(row["factors"]["fair_share"])),
    "J": ("JOBSIZE", lambda row: tables.rounded(row["factors"]["job_size"])),
    "P": ("PARTITION", lambda row: tables.rounded(row["factors"]["partition"])),
    "n": ("QOSNAME", lambda row: row["priority_class"] or "normal"),
    "Q": ("QOS", lambda row: tables.rounded(row["factors"]["qos"])),
    "N": ("NICE", lambda row: tables.rounded(row["factors"]["nice"])),
    "T": ("TRES", lambda row: tables.resources(row["factors"]["resources"])),
}
User = Annotated[str, typer.Option("--user", "-u", help="Only these users, separated by commas.")]
Partition = Annotated[str, typer.Option("--partition", "-p", help="Of these LocalQueues, by commas.")]
Jobs = Annotated[str, typer.Option("--jobs", "-j", help="Only these workloads, separated by commas.")]
NoHeader = Annotated[bool, typer.Option("--noheader", "-h", help="Without titles.")]


def _sbatch(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[OPTIONS OF SBATCH] SCRIPT [ARGUMENTS]", help="- reads the script from standard input."
        ),
    ],
    image: Annotated[str, typer.Option("--image", envvar="KUEUEWEB_IMAGE", help="The container image.")] = "",
    queue: Annotated[str, typer.Option("--queue", help="The LocalQueue, if no --partition names one.")] = "",
    namespace: Annotated[str, typer.Option("--namespace", help="The namespace (default: the context's).")] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", "--test-only", help="Print the Job after validating it.")
    ] = False,
    parsable: Annotated[bool, typer.Option("--parsable", help="Print only the name of the job.")] = False,
) -> None:
    """Submit a batch script of Slurm: its #SBATCH lines become a Job. Options that no Job can honour are refused.

    Options of this command precede those of sbatch.
    """
    given, script, arguments = _split(words)
    text = sys.stdin.read() if script == "-" else _script(script)
    batch = read_script(text, given)
    where = namespace_of(namespace)
    found = job_of(
        batch, namespace=where, image=image, queue=queue, arguments=arguments, unique=uuid.uuid4().hex[:8]
    )  # fmt: skip
    for warning in found.warnings:
        warn(f"sbatch: warning: {warning}")
    manifest = to_yaml(found.manifest)
    if dry_run:
        say(manifest.rstrip())
    with client() as asked:
        for before in jobs_before(found.manifest):
            _warn_without_job(asked, where, before)
        result = asked.apply(manifest, dry_run=dry_run or None)
        name = str(found.manifest["metadata"]["name"])
        if dry_run:
            write_applied(result)
            return
        write_now(f"{name}\n" if parsable or "parsable" in batch.options else f"Submitted batch job {name}\n")
        if found.waits:
            workload = workload_of_job(asked, where, "", name)
            asked.wait(where, workload, timeout_seconds=float("inf"))


def _warn_without_job(asked: Client, namespace: str, name: str) -> None:
    """Warn if a job waits for a job that does not exist: a name of `--job-name` is not the name of the job."""
    try:
        workload_of_job(asked, namespace, "", name)
    except ApiError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        warn(f'sbatch: warning: --dependency: no job "{name}" is in namespace "{namespace}": this job waits for one')


def _split(words: Sequence[str]) -> tuple[list[str], str, list[str]]:
    """Return the options of sbatch, the script and its arguments."""
    rest = list(words)
    for count in range(len(rest)):
        if rest[count] == "-" or not rest[count].startswith("-"):
            try:
                read_options(rest[:count])
            except ClientError:
                continue  # the value of the option before
            return rest[:count], rest[count], rest[count + 1 :]
    raise typer.BadParameter("Required value: a script", param_hint="SCRIPT")


def _script(name: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ClientError(f"{name}: {error}") from error


def _rows(asked: Client, where: str, *, user: str, partition: str, jobs: str, state: str, **more: str) -> Iterator[Row]:
    """Yield the workloads of a namespace that the options select, the oldest first."""
    filters: dict[str, str] = {**more, "status": tables.statuses(state)}
    users, partitions, names = (_parts(text) for text in (user, partition, jobs))
    if len(users) == 1:
        filters["submitted_by"] = users[0]
    if len(partitions) == 1:
        filters["local_queue"] = partitions[0]
    given = {key: value for key, value in filters.items() if value}
    for name in names or [""]:
        search = {"search": name} if name else {}
        for row in asked.rows("workloads", namespace=where, ordering="id", **given, **search):
            wanted = (
                not name or name in (row["name"], tables.job_name(row)),
                not users or row["submitted_by"] in users,
                not partitions or row["local_queue"] in partitions,
                tables.is_in(row, state),
            )
            if all(wanted):
                yield row


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _me() -> str:
    """Return the user of the context, else of the machine."""
    return context().username or getpass.getuser()


def _squeue(
    user: User = "",
    me: Annotated[bool, typer.Option("--me", help="Your own.")] = False,
    partition: Partition = "",
    jobs: Jobs = "",
    states: Annotated[str, typer.Option("--states", "-t", help="PD, CF, R, RQ, CD, F, CA or all, by commas.")] = "",
    form: Annotated[str, typer.Option("--format", "-o", help="Fields as %.18i %.9P %j.")] = "",
    noheader: NoHeader = False,
    namespace: Namespace = "",
    start: Annotated[bool, typer.Option("--start", help="Waiting ones, with the planned starts of backfill.")] = False,
) -> None:
    """List workloads that wait or run, with squeue's columns. JOBID is the job, NAME its workload, PARTITION the
    LocalQueue, NODES counts pods."""
    fields = tables.read_format(form or (_START_FORMAT if start else _QUEUE_FORMAT), _QUEUE_FIELDS)
    where = namespace_of(namespace)
    if not noheader:
        say(tables.line(fields, lambda name: _QUEUE_FIELDS[name][0]))
    wanted = states or ("PD,RQ" if start else "all" if jobs else _QUEUED)
    with client() as asked:
        rows = _rows(asked, where, user=_me() if me else user, partition=partition, jobs=jobs, state=wanted)
        placed = planned = 0
        for row in rows:
            planned_at = ""
            if start and row["status"] == "Pending":
                planned += 1
                planned_at = _planned_at(asked, row) if planned <= _MAX_RANKED else ""
            nodes = ""
            if row["status"] == "Admitted" and any(name in ("N", "R") for _, name, _, _ in fields):
                placed += 1
                nodes = _nodes(asked, row) if placed <= _MAX_PLACED else "-"
            shown = {**row, "nodes": nodes, "planned_at": planned_at}
            say(tables.line(fields, lambda name, shown=shown: _QUEUE_FIELDS[name][1](shown)))  # type: ignore[misc]
    if placed > _MAX_PLACED:
        warn(f"Only the nodes of the first {_MAX_PLACED} running workloads are shown; -j selects others.")
    if planned > _MAX_RANKED:
        warn(f"Only the planned starts of the first {_MAX_RANKED} workloads are shown; -j selects others.")


def _planned_at(asked: Client, row: Row) -> str:
    plan = asked.read("workloads", row["namespace"], row["name"], "explanation")["planned_start"]
    return str(plan["starts_at"]) if plan is not None else ""


def _start_of(row: Row) -> str:
    """When it was admitted, or is planned to start; "" if neither is known."""
    return str(row["admitted_at"] or row.get("planned_at") or "")


def _nodes(asked: Client, row: Row) -> str:
    found = {pod["node"] for pod in asked.pods(row["namespace"], row["name"]) if pod["node"]}
    return tables.node_list(sorted(found)) or "-"


def _scancel(
    names: Annotated[list[str] | None, typer.Argument(help="Workloads, or their jobs.")] = None,
    user: User = "",
    me: Annotated[bool, typer.Option("--me", help="All your own workloads.")] = False,
    partition: Partition = "",
    name: Annotated[str, typer.Option("--name", help="Jobs of this name.")] = "",
    state: Annotated[str, typer.Option("--state", "-t", help="PD, CF or R, by commas.")] = "",
    signal: Annotated[str, typer.Option("--signal", "-s", help="Rejected: pods get SIGTERM, then SIGKILL.")] = "",
    namespace: Namespace = "",
) -> None:
    """End workloads for good: by their names, their jobs' names, or all that the options select."""
    if signal:
        raise ClientError("--signal: Unsupported value: pods get SIGTERM, and SIGKILL after their grace period")
    where = namespace_of(namespace)
    found: list[str] = []
    with client() as asked:
        for each in names or ():
            try:
                found.append(asked.workload(where, each)["name"])
            except ApiError as error:
                if error.status != 404:
                    raise
                found.append(workload_of_job(asked, where, "", each))
        if user or me or partition or name or state:
            rows = _rows(asked, where, user=_me() if me else user, partition=partition, jobs="", state=state or _QUEUED)
            found += [row["name"] for row in rows if name in ("", row["name"], tables.job_name(row))]
        elif not found:
            raise typer.BadParameter("give names, or -u, --me, -p, --name or -t")
    if found:
        act("cancel", "cancelled", where, list(dict.fromkeys(found)))


def _sacct(
    user: User = "",
    allusers: Annotated[bool, typer.Option("--allusers", "-a", help="Of all users.")] = False,
    jobs: Jobs = "",
    partition: Annotated[str, typer.Option("--partition", "-r", help="Of these LocalQueues, by commas.")] = "",
    state: Annotated[str, typer.Option("--state", "-s", help="PD, R, CD, F, CA ..., by commas.")] = "all",
    start: Annotated[
        str, typer.Option("--starttime", "-S", help="Submitted at or after this time (default: today).")
    ] = "",
    end: Annotated[str, typer.Option("--endtime", "-E", help="Submitted before this time.")] = "",
    form: Annotated[
        str, typer.Option("--format", "-o", help="Fields separated by commas; `helpformat` lists them.")
    ] = _ACCOUNT_FORMAT,
    parsable: Annotated[
        bool, typer.Option("--parsable", "-p", help="Separate with |, and end each row with |.")
    ] = False,
    parsable2: Annotated[bool, typer.Option("--parsable2", "-P", help="Separate fields with |.")] = False,
    allocations: Annotated[bool, typer.Option("--allocations", "-X", help="Always on: there are no steps.")] = False,
    noheader: Annotated[bool, typer.Option("--noheader", "-n", help="Without titles.")] = False,
    namespace: Annotated[str, typer.Option("--namespace", help="The namespace (default: the context's).")] = "",
) -> None:
    """List workloads, also those that have ended, with sacct's columns: yours of today, without other options."""
    names = {name.lower(): name for name in _ACCOUNT_FIELDS}
    if form == "helpformat":
        say("\n".join(_ACCOUNT_FIELDS))
        return
    asked_for = [part.partition("%") for part in _parts(form)]
    if unknown := [name for name, _, _ in asked_for if name.lower() not in names]:
        raise ClientError(f'Unsupported value: "{unknown[0]}": supported fields: {", ".join(_ACCOUNT_FIELDS)}')
    fields = [(names[name.lower()], int(width.lstrip("-") or 10) if width.lstrip("-").isdigit() or not width else 10)
              for name, _, width in asked_for]  # fmt: skip
    who = user or ("" if allusers or jobs else _me())
    today = "" if jobs else datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0).isoformat()
    more = {"since": start or today, "until": end}

    def write(cells: Sequence[str]) -> None:
        if parsable or parsable2:
            say("|".join(cells) + ("|" if parsable and not parsable2 else ""))
        else:
            say(" ".join(cell[:width].rjust(width) for cell, (_, width) in zip(cells, fields, strict=True)))

    if not noheader:
        write([name for name, _ in fields])
        if not (parsable or parsable2):
            write(["-" * width for _, width in fields])
    with client() as asked:
        rows = _rows(asked, namespace_of(namespace), user=who, partition=partition, jobs=jobs, state=state, **more)
        for row in rows:
            write([_ACCOUNT_FIELDS[name](row) for name, _ in fields])


def _sinfo(
    partition: Partition = "",
    form: Annotated[str, typer.Option("--format", "-o", help="Fields as %9P %.5a.")] = _INFO_FORMAT,
    noheader: NoHeader = False,
    namespace: Namespace = "",
) -> None:
    """List LocalQueues and the nodes that their ClusterQueues' flavors reach, with sinfo's columns."""
    known = {name: (title, str) for name, title in _INFO_TITLES.items()}
    fields = tables.read_format(form, known)
    where = namespace_of(namespace)
    wanted = _parts(partition)
    if not noheader:
        say(tables.line(fields, lambda name: _INFO_TITLES[name]))
    with client() as asked:
        nodes = list(asked.rows("nodes"))
        reserved = _reserved(asked.read("reservation-calendar")["windows"])
        queues = {row["name"]: row for row in asked.rows("cluster-queues")}
        for queue in asked.rows("local-queues", namespace=where):
            if wanted and queue["name"] not in wanted:
                continue
            for values in _partition(queue, queues.get(queue["cluster_queue"]), nodes, reserved):
                say(tables.line(fields, lambda name, values=values: values[name]))  # type: ignore[misc]


def _sprio(
    user: User = "",
    partition: Partition = "",
    jobs: Jobs = "",
    long: Annotated[bool, typer.Option("--long", "-l", help="All factors.")] = False,
    form: Annotated[str, typer.Option("--format", "-o", help="Fields as %.18i %Y %F.")] = "",
    noheader: NoHeader = False,
    namespace: Namespace = "",
) -> None:
    """List the weighted factors of waiting workloads whose ClusterQueue or cohort has `priority_weights`, with sprio's
    columns. JOBID is the job, PARTITION the LocalQueue and then the factor of the queue's priority, QOS the class."""
    fields = tables.read_format(form or (_LONG_PRIORITY_FORMAT if long else _PRIORITY_FORMAT), _PRIORITY_FIELDS)
    where = namespace_of(namespace)
    if not noheader:
        say(tables.line(fields, lambda name: _PRIORITY_FIELDS[name][0]))
    asked_for, unranked, left_out = 0, 0, 0
    with client() as asked:
        for row in _rows(asked, where, user=user, partition=partition, jobs=jobs, state="PD,RQ"):
            if asked_for == _MAX_RANKED:
                left_out += 1
                continue
            asked_for += 1
            factors = asked.read("workloads", row["namespace"], row["name"], "explanation")["factors"]
            if factors is None:
                unranked += 1
                continue
            shown = {**row, "factors": factors}
            say(tables.line(fields, lambda name, shown=shown: _PRIORITY_FIELDS[name][1](shown)))  # type: ignore[misc]
    if unranked:
        warn(f"No factors for {unranked} workload(s): their queues are in the order of priority and time.")
    if left_out:
        warn(f"Only the first {_MAX_RANKED} of {_MAX_RANKED + left_out} workloads are shown; -j, -u, -p select others.")


def _reserved(windows: Sequence[Row]) -> dict[str, str]:
    """Slurm's state of each node in a window that is open: `maint`, or `resv` where some workloads are allowed."""
    found: dict[str, str] = {}
    for window in windows:
        if window["state"] in ("Active", "Busy"):
            state = "maint" if window["maintenance"] else "resv"
            found |= {node: min(state, found.get(node, state)) for node in window["nodes"]}
    return found


def _partition(
    queue: Row, cluster_queue: Row | None, nodes: Sequence[Row], reserved: Mapping[str, str]
) -> Iterator[dict[str, str]]:
    """Yield a line for each state of the nodes of a queue."""
    groups = (cluster_queue or {}).get("resource_groups") or ()
    flavors = {flavor["name"] for group in groups for flavor in group["flavors"]}
    policies = {each["stop_policy"] or "None" for each in (queue, cluster_queue or queue)}
    stopped = policies != {"None"}
    states: dict[str, list[str]] = {}
    for node in nodes:
        if flavors & set(node["flavors"]):
            state = _node_state(node)
            if state not in ("down", "drain"):
                state = reserved.get(node["name"], state)
            states.setdefault(state, []).append(node["name"])
    for state, names in sorted(states.items()) or [("n/a", [])]:
        yield {
            "P": queue["name"],
            "a": "inact" if stopped else "up",
            "l": "infinite",
            "D": str(len(names)),
            "t": state[:6],
            "T": state,
            "N": tables.node_list(names),
            "G": _gres(nodes, names),
        }


def _node_state(node: Row) -> str:
    if not node["ready"]:
        return "down"
    if node["cordoned"] or node["draining"] or node["unschedulable"]:
        return "drain"
    totals = node["device_totals"]
    used, total = totals["used_slots"], totals["slots"]
    if total:
        return "idle" if not used else "mix" if used < total else "alloc"
    return (
        "mix"
        if node.get("requested") and any(str(each) not in ("0", "") for each in node["requested"].values())
        else "idle"
    )


def _gres(nodes: Sequence[Row], names: Sequence[str]) -> str:
    found = next((node["device_totals"]["devices"] for node in nodes if node["name"] in names), 0)
    return f"gpu:{found}" if found else "(null)"


def register(app: typer.Typer) -> None:
    """Add these commands."""
    unread = {"allow_interspersed_args": False, "ignore_unknown_options": True}
    app.command("sbatch", context_settings=unread)(_sbatch)
    app.command("squeue")(_squeue)
    app.command("scancel")(_scancel)
    app.command("sacct")(_sacct)
    app.command("sinfo")(_sinfo)
    app.command("sprio")(_sprio)
