"""CronJobs: a Job at each minute that the schedule names."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from scheduling.model.times import parse_rfc3339
from simulation.api.objects import (
    JsonObject,
    condition_is_true,
    is_deleting,
    name_of,
    namespace_of,
    owner_reference,
    timestamp,
    uid_of,
)
from simulation.environment import Environment

_MANAGER = "kube-controller-manager"
_BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
"""The bounds of minutes, hours, days of the month, months and days of the week, of which 0 and 7 are Sunday."""
_MAX_DAYS = 366


class CronJobController:
    """In UTC, on the clock's own seconds: a cluster that runs faster does not have shorter hours."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def reconcile(self, namespace: str, name: str) -> float | None:
        cron_job = self._environment.store.get("cronjobs", namespace, name)
        if cron_job is None or is_deleting(cron_job):
            return None
        owned = [job for _, job in self._environment.store.owned_by(uid_of(cron_job), "jobs")]
        running = [job for job in owned if not _has_ended(job)]
        self._forget(cron_job, owned)
        spec, status = cron_job["spec"], dict(cron_job.get("status") or {})
        last = parse_rfc3339(status.get("lastScheduleTime") or cron_job["metadata"]["creationTimestamp"])
        due = next_time(spec["schedule"], last)
        if due is not None and due <= self._environment.now() and not spec.get("suspend"):
            status["lastScheduleTime"] = timestamp(due)
            policy = spec.get("concurrencyPolicy", "Allow")
            if policy == "Replace":
                for job in running:
                    self._environment.delete("jobs", job)
            if policy != "Forbid" or not running:
                self._create(cron_job, due)
            due = next_time(spec["schedule"], due)
        status["active"] = [{"kind": "Job", "name": name_of(job)} for job in running]
        if status != cron_job.get("status"):
            self._environment.set_status("cronjobs", cron_job, status, _MANAGER)
        return None if spec.get("suspend") else due

    def _create(self, cron_job: JsonObject, due: float) -> None:
        template = cron_job["spec"]["jobTemplate"]
        metadata = template.get("metadata") or {}
        job: JsonObject = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {
                "name": f"{name_of(cron_job)}-{int(due // 60)}",
                "namespace": namespace_of(cron_job),
                "labels": metadata.get("labels") or {},
                "annotations": metadata.get("annotations") or {},
                "ownerReferences": [owner_reference(cron_job)],
            },
            "spec": template["spec"],
        }
        self._environment.create("jobs", job, _MANAGER)

    def _forget(self, cron_job: JsonObject, jobs: list[JsonObject]) -> None:
        """Delete all but the newest of the Jobs that have ended."""
        for kind, field, default in (
            ("Complete", "successfulJobsHistoryLimit", 3),
            ("Failed", "failedJobsHistoryLimit", 1),
        ):
            ended = sorted((job for job in jobs if condition_is_true(job, kind)), key=name_of)
            kept = cron_job["spec"].get(field, default)
            for job in ended[: max(0, len(ended) - kept)]:
                self._environment.delete("jobs", job)


def _has_ended(job: JsonObject) -> bool:
    return condition_is_true(job, "Complete") or condition_is_true(job, "Failed")


def next_time(schedule: str, after: float) -> float | None:
    """Return the first minute after a time that matches a schedule of five fields; None if no minute of the next year
    does."""
    minutes, hours, days, months, weekdays = (
        _numbers(field, *bounds) for field, bounds in zip(schedule.split(), _BOUNDS, strict=True)
    )
    any_day = schedule.split()[2] == "*" or schedule.split()[4] == "*"
    first = datetime.fromtimestamp(after, UTC).replace(second=0, microsecond=0) + timedelta(minutes=1)
    for ahead in range(_MAX_DAYS):
        day = (first + timedelta(days=ahead)).replace(hour=0, minute=0)
        in_month, in_week = day.day in days, day.isoweekday() in weekdays or day.isoweekday() % 7 in weekdays
        if day.month not in months or not (in_month and in_week if any_day else in_month or in_week):
            continue
        for hour in sorted(hours):
            for minute in sorted(minutes):
                moment = day.replace(hour=hour, minute=minute)
                if moment >= first:
                    return moment.timestamp()
    return None


def _numbers(field: str, least: int, most: int) -> set[int]:
    found: set[int] = set()
    for part in field.split(","):
        interval, _, step = part.partition("/")
        first, dash, last = interval.partition("-")
        if interval == "*":
            begin, end = least, most
        else:
            begin = int(first)
            end = int(last) if dash else most if step else begin
        found.update(range(begin, end + 1, int(step or 1)))
    return found
