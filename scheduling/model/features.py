"""Kueue's feature gates that change decisions and have no other setting."""

from __future__ import annotations

from dataclasses import dataclass, replace

from scheduling.model.workload import Workload


@dataclass(frozen=True, slots=True)
class Features:
    """Kueue's gates, with Kueue's defaults.

    * priority_sorting (PrioritySortingWithinCohort): among those that borrow alike, the highest priority comes first;
      off: the oldest does.
    * prefers_non_borrowing (FairSharingPrioritizeNonBorrowing): under fair sharing, who need not borrow comes first.
    * preempts_within_nominal (FairSharingPreemptWithinNominal): under fair sharing, who stays within its own quota
      gets it back whatever the shares are.
    * flavor_fungibility (FlavorFungibility): off: the first flavor that fits, or the first of those that need the
      least, whatever the ClusterQueue says.
    * partial_admission, reclaimable_pods, admission_gates, priority_boost: off: the minimum counts of a workload, its
      reclaimable pods, its gates or the boost of its priority count for nothing.
    """

    priority_sorting: bool = True
    prefers_non_borrowing: bool = True
    preempts_within_nominal: bool = True
    flavor_fungibility: bool = True
    partial_admission: bool = True
    reclaimable_pods: bool = True
    admission_gates: bool = True
    priority_boost: bool = False

    def counted(self, workload: Workload) -> Workload:
        """The workload without the fields that count for nothing."""
        gates, boost, reclaimable = workload.admission_gates, workload.priority_boost, workload.reclaimable_pods
        pod_sets = workload.pod_sets
        if not self.partial_admission and any(pod_set.min_count is not None for pod_set in pod_sets):
            pod_sets = tuple(replace(pod_set, min_count=None) for pod_set in pod_sets)
        gates = gates if self.admission_gates else ()
        boost = boost if self.priority_boost else 0
        reclaimable = reclaimable if self.reclaimable_pods else {}
        now = (pod_sets, gates, boost, reclaimable)
        if now == (workload.pod_sets, workload.admission_gates, workload.priority_boost, workload.reclaimable_pods):
            return workload
        return replace(
            workload, pod_sets=pod_sets, admission_gates=gates, priority_boost=boost, reclaimable_pods=reclaimable
        )
