"""Second scheduling passes: decisions about workloads that hold quota already.

* Delayed topology. The nodes come from a ProvisioningRequest, or MultiKueue chooses the cluster. The first pass
reserves quota and sets `delayedTopologyRequest: Pending`. Once all checks are Ready, the second pass places the pods,
in their topology and on devices, and the workload is admitted. Attempts come after 1, 2, 4 ... 30 seconds.

* A failed node (see `node_replacement`).

Beyond Kueue: where devices are registered, pods that request devices also wait for provisioned nodes, with or without a
topology, because there are no nodes to place them on before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from scheduling.model.admission_check import AdmissionCheck
from scheduling.model.cluster_queue import ClusterQueue
from scheduling.model.vocabulary import AdmissionCheckStatus, ConditionType
from scheduling.model.workload import Workload
from scheduling.state.workload_info import WorkloadInfo

PROVISIONING = "kueue.x-k8s.io/provisioning-request"
MULTIKUEUE = "kueue.x-k8s.io/multikueue"
PENDING = "Pending"
READY = "Ready"
MAX_DELAY_SECONDS = 30.0


class SecondPass(NamedTuple):
    """A workload whose second pass is due, its time, and the number of failed attempts."""

    info: WorkloadInfo
    due: float
    failures: int = 0

    def is_due(self, now: float) -> bool:
        """Return whether its attempt is due. It is not due once the workload has been asked to stop."""
        return self.due <= now and not self.info.evicted

    def again(self, now: float) -> SecondPass:
        """Return the next attempt, after another failure."""
        failures = self.failures + 1
        return SecondPass(self.info, now + min(MAX_DELAY_SECONDS, 2.0 ** min(failures, 10)), failures)


def first_attempt(info: WorkloadInfo, now: float) -> SecondPass:
    """Return the attempt that follows the checks of a workload."""
    return SecondPass(info, now + 1.0)


def waits_for_topology(workload: Workload) -> bool:
    """Return whether a workload lacks only the topology that was delayed for its checks."""
    if any(map(workload.is_true, (ConditionType.ADMITTED, ConditionType.EVICTED))):
        return False
    if any(check.state is not AdmissionCheckStatus.READY for check in workload.admission_checks):
        return False
    return bool(workload.admission_checks) and is_delayed(workload)


def is_delayed(workload: Workload) -> bool:
    """Return whether pods of a workload that holds quota must still be placed."""
    assignments = workload.admission.pod_set_assignments if workload.admission is not None else ()
    return any(assignment.delayed_topology_request == PENDING for assignment in assignments)


def is_delayed_in(queue: ClusterQueue, checks: Mapping[str, AdmissionCheck], flavor: str) -> bool:
    """Return whether pods in the flavor are placed only after the ClusterQueue's admission checks: with MultiKueue in
    any flavor, with a ProvisioningRequest in the flavors that it covers.
    """
    for rule in queue.admission_checks:
        controller = checks[rule.name].controller_name if rule.name in checks else ""
        if controller == MULTIKUEUE:
            return True
        if controller == PROVISIONING and (not rule.on_flavors or flavor in rule.on_flavors):
            return True
    return False
