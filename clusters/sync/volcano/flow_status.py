"""The status of a JobFlow, in the words of Volcano's controller (pure)."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from clusters.api_objects import JsonObject
from queues.services.flows.job_flows import FlowJob, FlowJobPhase, FlowPhase, JobFlow
from scheduling.model.times import rfc3339

ENDED: Final = frozenset({FlowPhase.SUCCEED.value, FlowPhase.FAILED.value, FlowPhase.TERMINATING.value})
"""Phases in which Volcano creates no further job."""
_LISTS: Final = {
    FlowJobPhase.PENDING: "pendingJobs",
    FlowJobPhase.RUNNING: "runningJobs",
    FlowJobPhase.COMPLETED: "completedJobs",
    FlowJobPhase.TERMINATED: "terminatedJobs",
    FlowJobPhase.FAILED: "failedJobs",
}


def flow_status(flow: JobFlow) -> JsonObject:
    """Return the status of a flow. A job that waits for its targets is left out: Volcano would not have created it
    yet."""
    created = [job for job in flow.jobs if job.phase is not FlowJobPhase.WAITING]
    return {
        **{name: flow.names(phase) for phase, name in _LISTS.items()},
        "unKnowJobs": [],
        "jobStatusList": [_job_status(job) for job in created],
        "conditions": {job.name: _condition(job) for job in created},
        "state": {"phase": flow.phase.value},
    }


def _job_status(job: FlowJob) -> JsonObject:
    found: JsonObject = {"name": job.name, "state": job.phase.value, "restartCount": 0}
    times = {"startTimestamp": job.started_at, "endTimestamp": job.finished_at}
    return found | {name: _time(moment) for name, moment in times.items() if moment is not None}


def _condition(job: FlowJob) -> JsonObject:
    found: JsonObject = {"phase": job.phase.value, "createTime": _time(job.created_at)}
    if job.started_at is not None and job.finished_at is not None:
        found["runningDuration"] = f"{max(0, int((job.finished_at - job.started_at).total_seconds()))}s"
    return found


def _time(moment: datetime) -> str:
    return rfc3339(moment, whole_seconds=True)
