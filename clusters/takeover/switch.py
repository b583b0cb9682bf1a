"""The parts that a takeover and a handover share: a cluster, its clients and its clocks."""

from __future__ import annotations

import time
from collections.abc import Callable

from accounts.models import Cluster
from clusters.api_objects import LEASES
from clusters.client import ClusterClient
from clusters.leases import holder_of, kueues_lease
from clusters.takeover.kueues_webhooks import described, found_configurations
from clusters.takeover.report import Report


class Switch:
    """One switch of one cluster between a Kueue and us.

    * reader: the client for reads.
    * writer: the client for writes.
    * clock: the time in seconds since 1970.
    * steady, sleep: a monotonic clock, and a wait, both in seconds.
    """

    def __init__(
        self,
        cluster: Cluster,
        reader: ClusterClient,
        writer: ClusterClient,
        *,
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._cluster = cluster
        self._reader = reader
        self._writer = writer
        self._clock = clock
        self._steady = steady
        self._sleep = sleep

    def _begun_plan(self, next_holder: str) -> Report:
        """Return a report with the lease and the webhooks that the switch would touch. Raises ClusterError."""
        namespace, name = kueues_lease(self._cluster)
        holder = holder_of(self._reader.get(LEASES, namespace, name))
        report = Report()
        report.lease = [f"{namespace}/{name}: {holder or 'no holder'} -> {next_holder}"]
        report.webhooks = described(found_configurations(self._reader))
        return report
