"""The environment of the simulated controllers: the API's verbs, the time and the options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from simulation.api.errors import ApiError
from simulation.api.objects import JsonObject, draw, name_of, namespace_of, uid_of
from simulation.api.registry import DeleteOptions, Registry, Writer
from simulation.api.resources import BY_PLURAL
from simulation.api.store import ObjectStore
from simulation.api.webhooks import RefusedByWebhook

RUN_SECONDS = "kueueweb.io/run-seconds"
"""Pod annotation: how long its containers run, in seconds of cluster time."""
FAIL = "kueueweb.io/fail"
"""Pod annotation: "true" fails the pod at the end of its run, a number between 0 and 1 with that probability."""


BURST_NODES: Mapping[str, Any] = {
    "labels": {"pool": "burst"},
    "allocatable": {"cpu": "32", "memory": "128Gi", "pods": "110"},
}
"""The nodes that the autoscaler creates by default."""


@dataclass(slots=True)
class Options:
    """How the cluster lives. Durations are seconds of cluster time; on the wall they take 1 / time_scale as long.

    * default_run_seconds: of pods of Jobs without the annotation.
    * fail_rate: the share of pods of Jobs that fail, where no annotation says otherwise.
    * eviction_seconds: how long pods stay bound to a node that is not ready.
    * node_group: {labels, allocatable} of the nodes that the autoscaler makes; none: it makes no node.
    * max_provisioned: how many of them there may be; provision_seconds: how long that takes.
    """

    time_scale: float = 1.0
    start_seconds: float = 2.0
    stop_seconds: float = 1.0
    allocate_seconds: float = 0.5
    default_run_seconds: float = 60.0
    fail_rate: float = 0.0
    eviction_seconds: float = 300.0
    backoff_seconds: float = 10.0
    node_group: Mapping[str, Any] = field(default_factory=lambda: BURST_NODES)
    max_provisioned: int = 4
    provision_seconds: float = 5.0


class Controller(Protocol):
    """Brings one object a step closer to what it asks for, from what is stored alone (level-triggered)."""

    def reconcile(self, namespace: str, name: str) -> float | None:
        """Act on the current object; return when to look again, in seconds since the epoch, if time decides."""
        ...


class Environment:
    """The cluster as its controllers see it."""

    def __init__(self, registry: Registry, options: Options) -> None:
        self.registry = registry
        self.options = options

    @property
    def store(self) -> ObjectStore:
        return self.registry.store

    def now(self) -> float:
        return self.registry.clock.now()

    def scaled(self, seconds: float) -> float:
        """Convert cluster seconds to seconds of the clock."""
        return seconds / self.options.time_scale

    def draw(self, *parts: str) -> float:
        """Return a number in [0, 1) that the seed and the parts determine."""
        return draw(self.registry.seed, *parts)

    def create(self, plural: str, item: JsonObject, manager: str) -> JsonObject | None:
        """Create an object for a controller; None if it already exists or its namespace is being deleted. Raises
        RefusedByWebhook; the creation is then retried."""
        try:
            return self.registry.create(BY_PLURAL[plural], namespace_of(item), item, Writer(manager))
        except ApiError as error:
            if error.code not in (403, 404, 409) or isinstance(error, RefusedByWebhook):
                raise
            return None

    def set_status(self, plural: str, item: JsonObject, status: JsonObject, manager: str) -> JsonObject:
        """Writes the status of an object that a controller has just read."""
        changed = {**item, "status": status}
        writer = Writer(manager, "status")
        return self.registry.update(BY_PLURAL[plural], namespace_of(item), name_of(item), changed, writer)

    def set_object(self, plural: str, item: JsonObject, manager: str) -> JsonObject:
        """Writes an object that a controller has just read, its status aside."""
        return self.registry.update(BY_PLURAL[plural], namespace_of(item), name_of(item), item, Writer(manager))

    def delete(self, plural: str, item: JsonObject, propagation: str = "Background") -> None:
        """Request the deletion of exactly this object. Nothing happens if it does not exist or another has its name."""
        options = DeleteOptions(propagation=propagation, uid=uid_of(item))
        try:
            self.registry.delete(BY_PLURAL[plural], namespace_of(item), name_of(item), options)
        except ApiError as error:
            if error.code not in (404, 409):
                raise
