"""submit, wait, stop, resume, queue, explain."""

from __future__ import annotations

import uuid
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from kueueweb_client import calls
from kueueweb_client.cli.action_commands import DryRun, act
from kueueweb_client.cli.documentation import document_kind
from kueueweb_client.cli.files import read, write_applied
from kueueweb_client.cli.session import (
    At,
    Namespace,
    Output,
    OutputOption,
    client,
    namespace_of,
    noun_of,
    say,
    write_rows,
)
from kueueweb_client.documents import to_yaml
from kueueweb_client.errors import ClientError
from kueueweb_client.jobs import job_manifest
from kueueweb_client.nouns import WORKLOADS, Noun, noun_named
from kueueweb_client.types import Workload

if TYPE_CHECKING:
    from kueueweb_client.client import Client


class Until(StrEnum):
    """The states that a command can wait for."""

    ADMITTED = "admitted"
    FINISHED = "finished"
    DELETED = "deleted"


def _submit(
    command: Annotated[list[str] | None, typer.Argument(help="After --: the command of the container.")] = None,
    filename: Annotated[
        list[str] | None, typer.Option("--filename", "-f", help="Manifests to submit instead of an image.")
    ] = None,
    namespace: Namespace = "",
    queue: Annotated[str, typer.Option("--queue", "-q", help="The LocalQueue.")] = "",
    image: Annotated[str, typer.Option(help="The container's image.")] = "",
    name: Annotated[str, typer.Option(help="The job's name (default: job- and random letters).")] = "",
    replicas: Annotated[int, typer.Option(min=1, help="Number of pods that run in parallel.")] = 1,
    cpu: Annotated[str, typer.Option(help="CPUs of each pod (default: no request).")] = "1",
    memory: Annotated[str, typer.Option(help="Memory of each pod (default: no request).")] = "1Gi",
    gpus: Annotated[int, typer.Option(min=0, help="GPUs of each pod, or slices of GPUs.")] = 0,
    gpu_memory: Annotated[str, typer.Option(help="Memory of each slice: 20Gi, 8000Mi (default: a whole GPU).")] = "",
    gpu_cores: Annotated[int, typer.Option(min=0, max=100, help="Cores of each slice, in percent.")] = 0,
    priority: Annotated[str, typer.Option(help="A WorkloadPriorityClass.")] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Validate and print the manifest without storing it.")
    ] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the workload has finished.")] = False,
) -> None:
    """Submit a job: from manifests, or from an image, its needs and a command."""
    where = namespace_of(namespace)
    if filename:
        text = to_yaml(*read(filename, where))
    elif image and queue:
        needs = _needs(cpu, memory, gpus, gpu_memory, gpu_cores)
        name = name or f"job-{uuid.uuid4().hex[:8]}"
        text = to_yaml(
            job_manifest(where, name, queue, image, needs, replicas=replicas, priority=priority, command=command or ())
        )
    else:
        raise typer.BadParameter("give -f FILE, or --image and --queue")
    if dry_run:
        say(text.rstrip())
    with client() as asked:
        result = asked.apply(text, dry_run=dry_run or None)
        write_applied(result)
        if wait and not dry_run:
            for applied in result["objects"]:
                _wait_for_job(asked, applied["namespace"], applied["name"])


def _needs(cpu: str, memory: str, gpus: int, gpu_memory: str, gpu_cores: int) -> dict[str, str]:
    needs = {name: amount for name, amount in (("cpu", cpu), ("memory", memory)) if amount}
    if (gpu_memory or gpu_cores) and not gpus:
        raise typer.BadParameter("--gpu-memory and --gpu-cores need --gpus", param_hint="--gpus")
    if gpus:
        needs["nvidia.com/gpu"] = str(gpus)
    if gpu_memory:
        needs["nvidia.com/gpumem"] = str(_mib(gpu_memory))
    if gpu_cores:
        needs["nvidia.com/gpucores"] = str(gpu_cores)
    return needs


def _mib(text: str) -> int:
    for suffix, size in (("Gi", 1024), ("Mi", 1)):
        if text.endswith(suffix) and text.removesuffix(suffix).isdigit():
            return int(text.removesuffix(suffix)) * size
    raise typer.BadParameter(f'"{text}" is not an amount like 20Gi or 8000Mi', param_hint="--gpu-memory")


def _wait_for_job(asked: Client, namespace: str, job: str) -> None:
    for row in asked.workloads(namespace=namespace, search=job):
        if (row.get("owner") or {}).get("name", row["name"]) == job:
            found = asked.wait(namespace, row["name"], timeout_seconds=float("inf"))
            say(f"workload/{row['name']} {found['reason'] if found else 'deleted'}")
            return
    raise ClientError(f"job/{job} has no workload")


def _wait(
    name: str,
    namespace: Namespace = "",
    until: Annotated[Until, typer.Option("--for", help="The state to wait for.")] = Until.FINISHED,
    timeout: Annotated[float, typer.Option(help="Seconds before giving up, with exit code 124.")] = 600,
) -> None:
    """Wait for a workload. Exit code 1 if it failed, 124 if it took too long."""
    with client() as asked:
        found = asked.wait(namespace_of(namespace), name, until=until.value, timeout_seconds=timeout)
    say(f"workload/{name} {found['status'] if found else 'deleted'}")


def _stop_policy(noun: Noun, names: list[str], namespace: str, policy: str, word: str, *, dry_run: bool) -> None:
    with client() as asked:
        for name in names:
            parts = (namespace_of(namespace), name) if noun.namespaced else (name,)
            asked.send(calls.patch(noun.path, *parts, changes={"stop_policy": policy}, dry_run=dry_run))
            say(f"{noun.kind.lower()}/{name} {word}{' (dry run)' if dry_run else ''}")


def _stop(
    kind: Annotated[str, typer.Argument(help="workload, clusterqueue or localqueue")],
    names: list[str],
    namespace: Namespace = "",
    keep_already_running: Annotated[bool, typer.Option(help="Queues: admit no new workloads, but evict none.")] = False,
    dry_run: DryRun = False,
) -> None:
    """Stop workloads (they are evicted and wait), or queues (everything in them is evicted and waits)."""
    noun = _stoppable(kind)
    if noun is WORKLOADS:
        act("hold", "stopped", namespace, names, dry_run=dry_run)
    else:
        policy = "Hold" if keep_already_running else "HoldAndDrain"
        _stop_policy(noun, names, namespace, policy, "stopped", dry_run=dry_run)


def _resume(
    kind: Annotated[str, typer.Argument(help="workload, clusterqueue or localqueue")],
    names: list[str],
    namespace: Namespace = "",
    dry_run: DryRun = False,
) -> None:
    """Let stopped workloads or queues go on."""
    noun = _stoppable(kind)
    if noun is WORKLOADS:
        act("release", "resumed", namespace, names, dry_run=dry_run)
    else:
        _stop_policy(noun, names, namespace, "None", "resumed", dry_run=dry_run)


def _stoppable(kind: str) -> Noun:
    noun = noun_of(kind)
    if noun.path not in ("workloads", "cluster-queues", "local-queues"):
        raise typer.BadParameter(f"a {noun.kind} cannot be stopped; workloads, ClusterQueues and LocalQueues can")
    return noun


def _queue(
    name: Annotated[str, typer.Argument(help="A ClusterQueue, or a workload with --workload.")],
    workload: Annotated[bool, typer.Option("--workload", help="Show the workloads ahead of this one.")] = False,
    namespace: Namespace = "",
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many to show.")] = 100,
    output: OutputOption = Output.TABLE,
) -> None:
    """List the pending workloads of a ClusterQueue in order; or a workload's position and the workloads ahead of it."""
    with client() as asked:
        if not workload:
            page = asked.send(calls.page("workloads", cluster_queue=name, ordering="position", limit=limit))
            write_rows(WORKLOADS, page["results"], output, all_namespaces=True)
            return
        found = asked.workload(namespace_of(namespace), name)
        ahead: list[Workload] = []
        for row in asked.workloads(cluster_queue=found["cluster_queue"], ordering="position"):
            if row["uid"] == found["uid"]:
                say(f"workload/{name} is number {row['position']} in ClusterQueue {found['cluster_queue']}.")
                write_rows(WORKLOADS, ahead[:limit], output, all_namespaces=True)
                return
            ahead.append(row)
        say(f"workload/{name} is not waiting in a queue: {found['status']}. {found['message']}")


def _explain(
    name: Annotated[str, typer.Argument(help="A workload, or a field of a kind such as clusterqueue.spec.preemption.")],
    namespace: Namespace = "",
    api_version: Annotated[str, typer.Option(help="The group and version of the kind, GROUP/VERSION.")] = "",
    recursive: Annotated[bool, typer.Option("--recursive", help="List the fields of all fields.")] = False,
    at: At = "",
) -> None:
    """Explain why a workload is where it is; or document the fields of a kind, as kubectl explain does.

    A workload that has the name of a kind is explained as workload/NAME.
    """
    kind, _, path = name.partition(".")
    noun = noun_named(kind)
    if noun is not None:
        document_kind(noun, path, api_version, recursive=recursive)
        return
    name = name.removeprefix("workload/").removeprefix("wl/")
    where = namespace_of(namespace)
    with client(at) as asked:
        found = asked.workload(where, name)
    say(f"{found['status']}: {found['reason'] or 'no reason yet'}")
    say(found["message"] or "Not evaluated yet.")
    for condition in found["conditions"]:
        say(f"  {condition['type']}={condition['status']} {condition['reason']}: {condition['message']}")
    for held in found["devices"]:
        where_held = f"{held['pod_set']}[{held['replica']}] {held['container']}"
        what = f"{held['memory_mib']} MiB, {held['cores_percent']} % of {held['uuid']}"
        say(f"  {where_held}: {what} on {held['node']}")
    if found["push_error"]:
        say(f"The cluster refused it: {found['push_error']}")


def register(app: typer.Typer) -> None:
    """Add these commands."""
    app.command("submit", context_settings={"allow_interspersed_args": False, "ignore_unknown_options": False})(_submit)
    app.command("wait")(_wait)
    app.command("stop")(_stop)
    app.command("resume")(_resume)
    app.command("queue")(_queue)
    app.command("explain")(_explain)
