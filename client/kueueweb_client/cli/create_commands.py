"""create clusterqueue, localqueue and resourceflavor from flags, with kueuectl's words."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Final

import typer

from kueueweb_client.cli.files import write_applied
from kueueweb_client.cli.session import Namespace, client, namespace_of, say
from kueueweb_client.documents import to_yaml

_VERSION: Final = "kueue.x-k8s.io/v1beta2"
_create = typer.Typer(help="Create queues and flavors from flags.", no_args_is_help=True)
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the manifest without storing it.")]


class QueueingStrategy(StrEnum):
    """The order of pending workloads in a ClusterQueue."""

    BEST_EFFORT_FIFO = "BestEffortFIFO"
    STRICT_FIFO = "StrictFIFO"


def _pairs(text: str, option: str, between: str = ",") -> dict[str, str]:
    pairs = [part.partition("=") for part in text.split(between) if part]
    if any(not (mark and key and value) for key, mark, value in pairs):
        raise typer.BadParameter(f'"{text}" is not name=value{between}...', param_hint=option)
    return {key: value for key, _, value in pairs}


def _quotas(texts: list[str], option: str) -> dict[str, dict[str, str]]:
    """`flavor:resource=amount;resource=amount` -> {flavor: {resource: amount}}."""
    found: dict[str, dict[str, str]] = {}
    for text in texts:
        flavor, mark, amounts = text.partition(":")
        if not mark:
            raise typer.BadParameter(f'"{text}" is not flavor:resource=amount;...', param_hint=option)
        found[flavor] = _pairs(amounts, option, ";")
    return found


def _resource_groups(nominal: list[str], borrowing: list[str], lending: list[str]) -> list[dict[str, Any]]:
    """Flavors that cover the same resources are one group, in the order of the flags."""
    quotas = _quotas(nominal, "--nominal-quota")
    limits = {
        "borrowingLimit": _quotas(borrowing, "--borrowing-limit"),
        "lendingLimit": _quotas(lending, "--lending-limit"),
    }
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for flavor, amounts in quotas.items():
        resources = []
        for resource, amount in amounts.items():
            cell = {"name": resource, "nominalQuota": amount}
            cell |= {key: given[flavor][resource] for key, given in limits.items() if resource in given.get(flavor, {})}
            resources.append(cell)
        groups.setdefault(tuple(amounts), []).append({"name": flavor, "resources": resources})
    return [{"coveredResources": list(names), "flavors": flavors} for names, flavors in groups.items()]


def _store(manifest: dict[str, Any], dry_run: bool) -> None:
    text = to_yaml(manifest)
    if dry_run:
        say(text.rstrip())
    with client() as asked:
        write_applied(asked.apply(text, dry_run=dry_run or None))


@_create.command("clusterqueue")
@_create.command("cq", hidden=True)
def create_cluster_queue(
    name: str,
    nominal_quota: Annotated[list[str], typer.Option(help="flavor:resource=amount;resource=amount; once per flavor.")],
    cohort: Annotated[str, typer.Option(help="The cohort in which it lends and borrows quota.")] = "",
    queuing_strategy: Annotated[
        QueueingStrategy, typer.Option(help="The order of pending workloads.")
    ] = QueueingStrategy.BEST_EFFORT_FIFO,
    namespace_selector: Annotated[
        str, typer.Option(help="label=value,... of the namespaces that may use it (default: all).")
    ] = "",
    borrowing_limit: Annotated[list[str] | None, typer.Option(help="As --nominal-quota.")] = None,
    lending_limit: Annotated[list[str] | None, typer.Option(help="As --nominal-quota.")] = None,
    reclaim_within_cohort: Annotated[str, typer.Option(help="Never, LowerPriority or Any.")] = "Never",
    preemption_within_cluster_queue: Annotated[
        str, typer.Option(help="Never, LowerPriority or LowerOrNewerEqualPriority.")
    ] = "Never",
    dry_run: DryRun = False,
) -> None:
    """Create a ClusterQueue."""
    labels = _pairs(namespace_selector, "--namespace-selector")
    spec: dict[str, Any] = {
        "queueingStrategy": queuing_strategy.value,
        "namespaceSelector": {"matchLabels": labels} if labels else {},
        "preemption": {
            "reclaimWithinCohort": reclaim_within_cohort,
            "withinClusterQueue": preemption_within_cluster_queue,
        },
        "resourceGroups": _resource_groups(nominal_quota, borrowing_limit or [], lending_limit or []),
    }
    if cohort:
        spec["cohortName"] = cohort
    _store({"apiVersion": _VERSION, "kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec}, dry_run)


@_create.command("localqueue")
@_create.command("lq", hidden=True)
def create_local_queue(
    name: str,
    clusterqueue: Annotated[str, typer.Option("--clusterqueue", "-c", help="The ClusterQueue that it submits to.")],
    namespace: Namespace = "",
    dry_run: DryRun = False,
) -> None:
    """Create a LocalQueue."""
    metadata = {"name": name, "namespace": namespace_of(namespace)}
    _store(
        {"apiVersion": _VERSION, "kind": "LocalQueue", "metadata": metadata, "spec": {"clusterQueue": clusterqueue}},
        dry_run,
    )


@_create.command("resourceflavor")
@_create.command("rf", hidden=True)
def create_resource_flavor(
    name: str,
    node_labels: Annotated[str, typer.Option(help="label=value,... of its nodes.")] = "",
    node_taints: Annotated[str, typer.Option(help="key=value:effect,... of its nodes' taints.")] = "",
    topology: Annotated[str, typer.Option(help="The Topology of its nodes.")] = "",
    dry_run: DryRun = False,
) -> None:
    """Create a ResourceFlavor."""
    taints = []
    for part in filter(None, node_taints.split(",")):
        pair, mark, effect = part.rpartition(":")
        if not mark:
            raise typer.BadParameter(f'"{part}" is not key=value:effect', param_hint="--node-taints")
        key, _, value = pair.partition("=")
        taints.append({"key": key, "value": value, "effect": effect})
    spec = {"nodeLabels": _pairs(node_labels, "--node-labels"), "nodeTaints": taints, "topologyName": topology}
    manifest = {"apiVersion": _VERSION, "kind": "ResourceFlavor", "metadata": {"name": name}}
    _store({**manifest, "spec": {key: value for key, value in spec.items() if value}}, dry_run)


def register(app: typer.Typer) -> None:
    """Add these commands."""
    app.add_typer(_create, name="create")
