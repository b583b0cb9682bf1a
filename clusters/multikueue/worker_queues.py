"""The queues of workers, and the quotas that a manager's ClusterQueue gets from them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from clusters.api_objects import JsonObject
from clusters.jobs.framework.manifest import dig
from queues.kinds.quotas import ResourceGroupSpec
from scheduling.model.quantity import InvalidQuantity, parse_quantity, sum_of_quantities

UNSUPPORTED: Final = "UnsupportedConfiguration"


@dataclass(frozen=True, slots=True)
class WorkerQueues:
    """A worker's queues: the ClusterQueue of each LocalQueue (`namespace/name`), and the nominal quotas, as (resource,
    quantity), of each ClusterQueue; or `refusal`, why they can't be read."""

    leads_to: Mapping[str, str]
    quotas: Mapping[str, Sequence[tuple[str, str]]]
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """The condition of a ClusterQueue, and the quota of each resource, as quantities, where it is automated."""

    automated: bool
    reason: str
    message: str
    quotas: Mapping[str, str] | None = None


def read_queues(local_queues: Sequence[JsonObject], cluster_queues: Sequence[JsonObject]) -> WorkerQueues:
    """Read the queues as the worker's API server has them, in v1beta1 or v1beta2, or why they are not Kueue's."""
    try:
        return _read(local_queues, cluster_queues)
    except (AttributeError, InvalidQuantity, KeyError, TypeError) as error:
        return WorkerQueues({}, {}, f"a LocalQueue or ClusterQueue does not have Kueue's format: {error!r}")


def _read(local_queues: Sequence[JsonObject], cluster_queues: Sequence[JsonObject]) -> WorkerQueues:
    return WorkerQueues(
        {
            f"{each['metadata']['namespace']}/{each['metadata']['name']}": str(dig(each, "spec", "clusterQueue") or "")
            for each in local_queues
        },
        {each["metadata"]["name"]: _nominal_quotas(each) for each in cluster_queues},
    )


def _nominal_quotas(queue: JsonObject) -> list[tuple[str, str]]:
    cells = [
        (str(cell["name"]), str(cell["nominalQuota"]))
        for group in dig(queue, "spec", "resourceGroups") or ()
        for flavor in group.get("flavors") or ()
        for cell in flavor.get("resources") or ()
    ]
    for _, text in cells:
        if parse_quantity(text) < 0:
            raise InvalidQuantity(f'nominalQuota "{text}" must be greater than or equal to 0')
    return cells


def sum_of_workers(local_queues: Collection[str], workers: Sequence[WorkerQueues]) -> dict[str, str]:
    """Sum, by resource, the quotas of the ClusterQueues that these LocalQueues lead to. Each ClusterQueue of a worker
    counts once."""
    found: dict[str, list[str]] = {}
    for worker in workers:
        reached = {queue for key, queue in worker.leads_to.items() if key in local_queues}
        for queue in sorted(reached & worker.quotas.keys()):
            for resource, quantity in worker.quotas[queue]:
                found.setdefault(resource, []).append(quantity)
    return {resource: sum_of_quantities(quantities) for resource, quantities in found.items()}


def judge(
    groups: Sequence[ResourceGroupSpec], local_queues: Collection[str], workers: Mapping[str, WorkerQueues]
) -> Finding:
    """Decide the quotas that an automated ClusterQueue gets from its connected workers."""
    if len(groups) != 1 or len(groups[0].flavors) != 1:
        rule = "Quota automation requires that the manager-side ClusterQueue has exactly one ResourceFlavor"
        return Finding(False, UNSUPPORTED, rule)
    refusals = [f"worker {name}: {worker.refusal}" for name, worker in workers.items() if worker.refusal]
    if refusals:
        return Finding(False, "QueuesNotReadable", f"The quotas stay unchanged: {'; '.join(refusals)}")
    sums = sum_of_workers(local_queues, list(workers.values()))
    covered = groups[0].covered_resources
    missing = sorted(sums.keys() - set(covered))
    if missing:
        rule = f"manager-side coveredResources is missing resources configured on workers: [{' '.join(missing)}]"
        return Finding(False, UNSUPPORTED, rule)
    message = "ClusterQueue quota is automatically managed based on MultiKueue workers."
    return Finding(True, "QuotaAutomated", message, {resource: sums.get(resource, "0") for resource in covered})
