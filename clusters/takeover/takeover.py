"""Takes a cluster over from Kueue: takes its lease, mirrors its admissions, switches its webhooks off, and lets
kueueweb decide.

Each step may be repeated: a takeover that was interrupted is completed by the next one.
"""

from __future__ import annotations

from typing import Final

from accounts.models import ClusterMode
from accounts.services.cluster_settings import set_mode
from clusters.api_objects import LEASES, JsonObject, Kind
from clusters.jobs.framework import conditions as state
from clusters.leases import LeaseWatch, holder_of, is_kueuewebs, kueues_lease
from clusters.push.installation import identity
from clusters.push.kueues_lease import take, taking_over
from clusters.served.kueue_kinds import KUEUE_KINDS, newest
from clusters.sync.live_kueue import GONE_AFTER
from clusters.sync.watcher import Watcher
from clusters.takeover.kueues_webhooks import switch_off
from clusters.takeover.report import Refused, Report
from clusters.takeover.switch import Switch
from clusters.takeover.witness import Witness
from queues.models import Workload

_LOOK_SECONDS: Final = 2.0


class Takeover(Switch):
    """One takeover of one cluster."""

    def plan(self) -> Report:
        """Return the lease, webhooks, objects and jobs that would be touched. Raises ClusterError."""
        report = self._begun_plan(identity())
        for kind in self._kinds():
            items = self._reader.list(kind).items
            if kind.kind != "Workload":
                report.objects += [f"{kind.kind} {_key(item)}" for item in items]
                continue
            for item in items:
                if not state.is_finished(item):
                    (report.running if state.has_quota(item) else report.waiting).append(_described(item))
        return report

    def run(self, patience_seconds: float, *, take_lease: bool = False) -> Report:
        """Take over. Waits this many seconds for Kueue to release its lease; with `take_lease` the lease is taken, and
        Kueue's leader ends by its own rules. Raises Refused and ClusterError."""
        self._hold_lease(patience_seconds, take_lease=take_lease)
        if self._cluster.is_mirrored:
            Watcher(self._cluster, self._reader, clock=self._clock).resync()
            self._check_mirrored()
        report = self.plan()
        witness = Witness(self._reader, report.running)
        switch_off(self._writer)
        set_mode(self._cluster, ClusterMode.SCHEDULE)
        self._cluster.refresh_from_db()
        report.changed = witness.changed()
        return report

    def _kinds(self) -> list[Kind]:
        served = self._reader.served(kind for kinds in KUEUE_KINDS.values() for kind in kinds)
        return sorted(newest(served), key=lambda kind: kind.kind)

    def _hold_lease(self, patience_seconds: float, *, take_lease: bool) -> None:
        watch = LeaseWatch(self._steady)
        until = self._steady() + patience_seconds
        while True:
            lease = self._reader.get(LEASES, *kueues_lease(self._cluster))
            holder = holder_of(lease)
            if not holder or is_kueuewebs(holder) or take_lease or watch.look(lease) >= GONE_AFTER:
                break
            if self._steady() >= until:
                where = "/".join(kueues_lease(self._cluster))
                remedy = "scale its Deployment to no replicas, or add --take-lease"
                raise Refused([f"Kueue's leader {holder} holds the lease {where}: {remedy}"])
            self._sleep(_LOOK_SECONDS)
        name = identity() if not self._cluster.is_mirrored else taking_over()
        take(self._cluster, self._writer, lease, name)
        if holder and not is_kueuewebs(holder) and take_lease:
            # A leader that cannot renew its lease ends before the lease expires.
            self._sleep(float(((lease or {}).get("spec") or {}).get("leaseDurationSeconds") or 15))

    def _check_mirrored(self) -> None:
        """Every Workload that holds quota has a row that holds it too."""
        held = Workload.objects.filter(cluster=self._cluster, quota_reserved_at__isnull=False)
        known = {f"{namespace}/{name}" for namespace, name in held.values_list("namespace", "name")}
        lost = [
            f"Workload {_key(item)}: it holds quota, and could not be read; the watcher's log has the reason"
            for kind in self._kinds()
            if kind.kind == "Workload"
            for item in self._reader.list(kind).items
            if state.has_quota(item) and not state.is_finished(item) and _key(item) not in known
        ]
        if lost:
            raise Refused(lost)


def _key(item: JsonObject) -> str:
    metadata = item["metadata"]
    return "/".join(filter(None, (metadata.get("namespace", ""), metadata["name"])))


def _described(workload: JsonObject) -> str:
    owner = next(iter(workload["metadata"].get("ownerReferences") or ()), None)
    namespace = workload["metadata"]["namespace"]
    return f"{owner['kind']} {namespace}/{owner['name']}" if owner else f"Workload {_key(workload)}"
