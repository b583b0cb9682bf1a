"""Volcano's queues: recorded states of the plugins proportion and capacity through `scheduling.policies`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from scheduling.model.quantity import NANOS, parse_quantity
from scheduling.policies.capacity import CapacityQueue, Entitlement, capacity
from scheduling.policies.proportion import WeightedQueue, proportion, real_capability
from scheduling.policies.queue_order import Standing, order_of_queues
from scheduling.policies.resource_vector import PODS, Vector, excess, is_within, is_zero, share_of, total_of

_BASIC: Final = ("cpu", "memory")
_ROOT: Final = "root"
_MILLI: Final = 10**6
_SHOWN: Final = {"cpu": 1000, "memory": 2**30, PODS: 1}


def _vector(amounts: Mapping[str, Any] | None) -> dict[str, float]:
    """Quantities in Volcano's units, in which cpu and memory always have an amount."""
    found = dict.fromkeys(_BASIC, 0.0)
    for name, text in (amounts or {}).items():
        found[name] = parse_quantity(text) / (NANOS if name in ("memory", PODS) else _MILLI)
    return found


def _limits(amounts: Mapping[str, Any] | None) -> dict[str, float]:
    """Return a capability: without cpu or memory it does not limit them."""
    return {name: amount for name, amount in _vector(amounts).items() if amount or name not in _BASIC}


def _shown(vector: Vector) -> dict[str, Any]:
    return {name: "inf" if amount == math.inf else amount / _SHOWN.get(name, 1000) for name, amount in vector.items()}


@dataclass(slots=True)
class _Job:
    """A PodGroup's requests: those of its running tasks, those of all, and what it needs to start."""

    group: Mapping[str, Any]
    allocated: dict[str, float]
    request: dict[str, float]
    least: dict[str, float]
    running: int

    @classmethod
    def read(cls, group: Mapping[str, Any]) -> _Job:
        allocated: list[Vector] = []
        request: list[Vector] = []
        for task in group["tasks"]:
            pod = {**_vector(task["request"]), PODS: 1.0}
            request += [pod] * task["replicas"]
            allocated += [pod] * len(task.get("running_on") or ())
        least = _vector(group["minResources"]) if "minResources" in group else {}
        return cls(group, total_of(allocated), total_of(request), least, len(allocated))

    @property
    def inqueue(self) -> dict[str, float]:
        """The resources that were promised to the job and that it does not use yet."""
        phase = self.group["phase"]
        promised = phase == "Inqueue" or (phase == "Running" and self.running >= self.group["minMember"])
        return excess(self.least, self.allocated) if promised else {}

    @property
    def elastic(self) -> dict[str, float]:
        """The resources that it uses beyond those that it needs."""
        return excess(self.allocated, self.least)


@dataclass(slots=True)
class _Use:
    """The figures of a queue that follow from its jobs."""

    allocated: dict[str, float]
    request: dict[str, float]
    inqueue: dict[str, float]
    elastic: dict[str, float]

    @classmethod
    def of(cls, jobs: Iterable[_Job]) -> _Use:
        known = list(jobs)
        nothing: list[Vector] = [dict.fromkeys(_BASIC, 0.0)]
        return cls(
            *(
                total_of(nothing + [getattr(job, name) for job in known])
                for name in ("allocated", "request", "inqueue", "elastic")
            )
        )


def _jobs_by_queue(scenario: Mapping[str, Any]) -> dict[str, list[_Job]]:
    found: dict[str, list[_Job]] = {}
    for group in scenario["podGroups"]:
        found.setdefault(group["queue"], []).append(_Job.read(group))
    return found


def _figures(use: _Use, deserved: Vector, guarantee: Vector, most: Vector, share: float) -> dict[str, Any]:
    found = {
        "allocated": use.allocated,
        "request": use.request,
        "inqueue": use.inqueue,
        "elastic": use.elastic,
        "deserved": deserved,
        "guarantee": guarantee,
        "realCapability": most,
    }
    return {**{name: _shown(vector) for name, vector in found.items()}, "share": share}


def _standing(queue: Mapping[str, Any], share: float, *, best_effort: bool = False) -> Standing:
    return Standing(queue["name"], queue.get("priority", 0), share, best_effort, -queue["age_s"])


def proportion_of(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """Return the queues that have jobs, divided by weight, and the order in which they are served."""
    jobs = _jobs_by_queue(scenario)
    total = total_of(_vector(node["allocatable"]) for node in scenario["nodes"])
    guaranteed = total_of(_vector(queue.get("guarantee")) for queue in scenario["queues"])
    queues = {queue["name"]: queue for queue in scenario["queues"] if queue["name"] in jobs}
    uses = {name: _Use.of(jobs[name]) for name in queues}
    claims = {
        name: WeightedQueue(
            queue.get("weight", 1),
            uses[name].request,
            _vector(queue.get("guarantee")),
            _limits(queue.get("capability")),
        )
        for name, queue in queues.items()
    }
    deserved = proportion(total, claims, guaranteed)
    shares = {name: share_of(uses[name].allocated, deserved[name]) for name in queues}
    found = {}
    for name, claim in claims.items():
        most = real_capability(total, guaranteed, claim.guarantee, claim.capability)
        found[name] = _figures(uses[name], deserved[name], claim.guarantee, most, shares[name])
        found[name]["overused"] = is_within(deserved[name], uses[name].allocated)
    order = order_of_queues({name: (_standing(queue, shares[name]),) for name, queue in queues.items()})
    return {"queues": found, "queueOrder": order}


def capacity_of(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """Return the queues that have jobs, without a tree, and the order in which they are served."""
    jobs = _jobs_by_queue(scenario)
    total = total_of(_vector(node["allocatable"]) for node in scenario["nodes"])
    declared = {queue["name"]: queue for queue in scenario["queues"]}
    entitled = capacity(
        {"": CapacityQueue(None, capability=total)} | {name: _declared(queue, "") for name, queue in declared.items()},
        total,
    )
    queues = {name: queue for name, queue in declared.items() if name in jobs}
    uses = {name: _Use.of(jobs[name]) for name in queues}
    paths = {name: (_of_capacity(queue, entitled[name], uses[name]),) for name, queue in queues.items()}
    return {
        "queues": {name: _entitled(uses[name], entitled[name], paths[name][-1].share) for name in queues},
        "queueOrder": order_of_queues(paths),
    }


def capacity_tree_of(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """Return all queues of a tree, and its leaves in the order in which they are served."""
    jobs = _jobs_by_queue(scenario)
    total = total_of(_vector(node["allocatable"]) for node in scenario["nodes"])
    queues = {queue["name"]: queue for queue in scenario["queues"]}
    parents = {name: queue.get("parent") or _ROOT for name, queue in queues.items() if name != _ROOT}
    paths = {name: _path(name, parents) for name in queues}
    top_down = sorted(queues, key=lambda name: len(paths[name]))
    entitled = capacity({name: _declared(queues[name], parents.get(name)) for name in top_down}, total, bounded=False)
    below: dict[str, list[_Job]] = {name: [] for name in queues}
    for leaf, known in jobs.items():
        for name in (_ROOT, *paths[leaf]):
            below[name] += known
    uses = {name: _Use.of(known) for name, known in below.items()}
    standings = {name: _of_capacity(queue, entitled[name], uses[name]) for name, queue in queues.items()}
    leaves = [name for name in queues if name not in parents.values() and name != _ROOT]
    return {
        "queues": {name: _entitled(uses[name], entitled[name], standings[name].share) for name in queues},
        "queueOrder": order_of_queues({leaf: tuple(standings[name] for name in paths[leaf]) for leaf in leaves}),
    }


def _declared(queue: Mapping[str, Any], parent: str | None) -> CapacityQueue:
    return CapacityQueue(
        parent, _vector(queue.get("deserved")), _vector(queue.get("guarantee")), _limits(queue.get("capability"))
    )


def _of_capacity(queue: Mapping[str, Any], entitled: Entitlement, use: _Use) -> Standing:
    """Without a deserved resource the share is 1, whatever the queue uses."""
    best_effort = is_zero(entitled.deserved)
    share = 1.0 if best_effort else share_of(use.allocated, entitled.deserved)
    return _standing(queue, share, best_effort=best_effort)


def _entitled(use: _Use, entitled: Entitlement, share: float) -> dict[str, Any]:
    return _figures(use, entitled.deserved, entitled.guarantee, entitled.real_capability, share)


def _path(name: str, parents: Mapping[str, str]) -> tuple[str, ...]:
    """Return the queue and its ancestors, from below the root downwards."""
    found: list[str] = []
    while name in parents:
        found.append(name)
        name = parents[name]
    return tuple(reversed(found))
