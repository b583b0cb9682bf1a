"""The results of one sampling by subject, before they are stored."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple

from history.models import Scope


class SubjectKey(NamedTuple):
    """The columns of a `Subject` that identify it in its cluster."""

    scope: Scope
    name: str = ""
    kind: str = ""
    flavor: str = ""
    resource: str = ""
    detail: str = ""


@dataclass(slots=True)
class Workloads:
    """Fields as in `WorkloadSample`."""

    pending: int = 0
    held: int = 0
    reserving: int = 0
    admitted: int = 0
    share: float | None = None


@dataclass(slots=True)
class Quota:
    """Fields as in `QuotaSample`."""

    used: int = 0
    nominal: int | None = None
    ceiling: int | None = None
    borrowed: int | None = None
    lent: int | None = None


@dataclass(slots=True)
class Devices:
    """Fields as in `DeviceSample`."""

    devices_held: float = 0.0
    devices_idle: float = 0.0
    devices_unmeasured: float = 0.0
    memory_held_mib: float = 0.0
    memory_used_mib: float | None = None
    cores_held_percent: float = 0.0
    cores_used_percent: float | None = None
    devices: float | None = None
    devices_stranded: float | None = None
    devices_demanded: float | None = None
    memory_mib: float | None = None
    cores_percent: float | None = None


@dataclass(slots=True)
class Gathered:
    """The samples of one moment. `events` include those of the steps just before, in case some were committed late."""

    workloads: dict[SubjectKey, Workloads] = field(default_factory=lambda: defaultdict(Workloads))
    quota: dict[SubjectKey, Quota] = field(default_factory=lambda: defaultdict(Quota))
    counts: dict[SubjectKey, int] = field(default_factory=lambda: defaultdict(int))
    events: dict[tuple[SubjectKey, datetime], int] = field(default_factory=lambda: defaultdict(int))
    devices: dict[SubjectKey, Devices] = field(default_factory=lambda: defaultdict(Devices))

    def subjects(self) -> Iterator[SubjectKey]:
        """Yield every subject with data to store; some occur more than once."""
        for part in (self.workloads, self.quota, self.counts, self.devices):
            yield from part
        yield from (subject for subject, _ in self.events)


@dataclass(frozen=True)
class Places:
    """The ClusterQueue of each LocalQueue, and the ancestors of each ClusterQueue, as the leader published them."""

    cluster_queues: Mapping[str, Mapping[str, Any]]
    cohorts: Mapping[str, Mapping[str, Any]]
    local_queues: Mapping[tuple[str, str], str]

    @cached_property
    def above(self) -> Mapping[str, tuple[str, ...]]:
        """The cohorts above each queue, the nearest first."""
        return {name: tuple(self._ancestors(queue["cohort"])) for name, queue in self.cluster_queues.items()}

    def _ancestors(self, cohort: str) -> Iterator[str]:
        seen: set[str] = set()
        while cohort and cohort not in seen:
            seen.add(cohort)
            yield cohort
            cohort = self.cohorts.get(cohort, {}).get("parent", "")

    def scopes(self, namespace: str, local_queue: str, cluster_queue: str) -> Iterator[tuple[Scope, str]]:
        """Yield all scopes whose series a workload of this queue counts in."""
        yield Scope.CLUSTER, ""
        if namespace:
            yield Scope.NAMESPACE, namespace
        if namespace and local_queue:
            yield Scope.LOCAL_QUEUE, f"{namespace}/{local_queue}"
        queue = cluster_queue or self.local_queues.get((namespace, local_queue), "")
        if queue:
            yield Scope.CLUSTER_QUEUE, queue
            for cohort in self.above.get(queue, ()):
                yield Scope.COHORT, cohort
