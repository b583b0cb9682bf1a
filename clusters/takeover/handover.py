"""From us to a Kueue: it finds a Workload of every job that runs, with our admission, before it may lead.

Each step may be repeated: a handover that was interrupted is completed by the next one. Until the mode has changed we
decide, and a refusal changes nothing.
"""

from __future__ import annotations

from typing import Final

from accounts.models import ClusterMode
from accounts.services.cluster_settings import set_mode, set_serves_kueue_objects
from clusters.api_objects import LEASES
from clusters.leases import holder_of, is_kueuewebs, kueues_lease
from clusters.push.installation import identity
from clusters.push.kueue_objects.serving import forget, serve
from clusters.push.kueues_lease import release, taking_over
from clusters.push.sweep_lock import sweep_lock
from clusters.served.kueue_kinds import KUEUE_KINDS
from clusters.takeover.kueues_webhooks import switch_on
from clusters.takeover.rehearsal import objections
from clusters.takeover.report import Refused, Report
from clusters.takeover.switch import Switch
from clusters.takeover.witness import Witness
from foundation.exceptions import Conflict
from queues.models import Workload
from queues.services.workload_objects import jobs_unknown_to_kueue
from scheduling.model.vocabulary import WorkloadStatus

_ROUND_SECONDS: Final = 1.1
"""The status of one object is written once a second at most."""


class Handover(Switch):
    """One handover of one cluster."""

    def plan(self) -> Report:
        """Return the lease, webhooks, objects and jobs that would be touched. Raises ClusterError."""
        report = self._begun_plan("the next Kueue")
        rows = Workload.objects.filter(cluster=self._cluster, job__isnull=False).exclude(status=WorkloadStatus.FINISHED)
        for row in rows.select_related("job").order_by("pk"):
            job = f"{row.job.kind} {row.namespace}/{row.job.name}" if row.job else row.key
            report.objects.append(f"Workload {row.key}")
            (report.running if row.quota_reserved_at is not None else report.waiting).append(job)
        return report

    def refusals(self) -> list[str]:
        """Return the reasons to refuse the handover that are visible without a write: a Kueue already leads, its CRDs
        are missing, or it would change jobs, given their current Workloads. Raises ClusterError."""
        found = self._blocked()
        return found or objections(self._cluster, self._reader)

    def run(self, patience_seconds: float) -> Report:
        """Hand over. Workloads that were not written yet are retried for this many seconds. Raises Refused and
        ClusterError."""
        blocked = self._blocked()
        if blocked:
            raise Refused(blocked)
        report = self.plan()
        witness = Witness(self._reader, report.running)
        if not self._cluster.is_mirrored:
            with sweep_lock(self._cluster) as mine:
                if not mine:
                    raise Refused(["A sweep of this cluster is in progress: try again."])
                self._write_and_let_go(self._steady() + patience_seconds)
        switch_on(self._writer)
        for holder in (identity(), taking_over()):
            release(self._cluster, self._writer, holder)
        report.changed = witness.changed()
        return report

    def _blocked(self) -> list[str]:
        holder = holder_of(self._reader.get(LEASES, *kueues_lease(self._cluster)))
        if self._cluster.is_mirrored:
            return []
        if holder and not is_kueuewebs(holder) and self._cluster.kueue_is_alive:
            return [f"A Kueue already leads: {holder}. Stop it first."]
        if not self._reader.served(KUEUE_KINDS["Workload"]):
            return ["The cluster does not serve Kueue's Workloads: install Kueue's CRDs first."]
        return []

    def _write_and_let_go(self, until: float) -> None:
        """Serve the rows until the cluster's objects match them, and then change the mode at once."""
        if not self._cluster.serves_kueue_objects:
            set_serves_kueue_objects(self._cluster, serves=True)
            self._cluster.refresh_from_db()
        forget()
        while True:
            serve(self._cluster, self._writer, self._clock)
            untold = jobs_unknown_to_kueue(self._cluster)
            if not untold:
                untold = objections(self._cluster, self._reader)
                if untold:
                    raise Refused(untold)
                try:
                    set_mode(self._cluster, ClusterMode.OBSERVE)
                except Conflict as admitted_meanwhile:
                    untold = [str(admitted_meanwhile)]
                else:
                    self._cluster.refresh_from_db()
                    return
            if self._steady() >= until:
                raise Refused(untold)
            self._sleep(_ROUND_SECONDS)
