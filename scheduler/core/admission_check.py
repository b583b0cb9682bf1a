"""AdmissionCheck: someone else who must agree before a workload with quota may start."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.core.decisions import AdmissionCheckStatus


@dataclass(frozen=True, slots=True)
class AdmissionCheck:
    """Kueue's AdmissionCheck: which controller answers, and whether it is active."""

    name: str
    controller_name: str = ""
    active: bool = True


@dataclass(frozen=True, slots=True)
class AdmissionCheckState:
    """The state of one check of one workload (`status.admissionChecks`)."""

    name: str
    state: AdmissionCheckStatus = AdmissionCheckStatus.PENDING
    message: str = ""
    last_transition_time: float = 0.0
    requeue_after_seconds: float | None = None
    retry_count: int = 0
