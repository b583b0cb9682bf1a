"""Sets the states of admission checks (Kueue's `status.admissionChecks`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from django.db import transaction
from django.utils import timezone

from accounts.models import Cluster
from foundation.exceptions import Conflict, NotFound
from foundation.wake_ups import wake_scheduler
from queues.manifests.pod_set_updates import read_pod_set_updates
from queues.models import AdmissionCheck, Workload
from queues.services.workload_events import log_event
from scheduling.model.times import rfc3339
from scheduling.model.vocabulary import AdmissionCheckStatus
from scheduling.state.second_pass import MULTIKUEUE, PROVISIONING

WEBHOOK_CONTROLLER: Final = "kueueweb.io/webhook"
"""The controller name of checks that a URL answers."""
_OUR_CONTROLLERS: Final = (PROVISIONING, MULTIKUEUE, WEBHOOK_CONTROLLER)
_MAX_MESSAGE: Final = 32_768
"""The length to which Kubernetes limits a condition's message."""


@dataclass(frozen=True, slots=True)
class CheckAnswer:
    """The answer of a check for a workload. `requeue_after_seconds` belongs to Retry.

    `pod_set_updates` are labels, annotations, node selectors and tolerations that the job's pods get when it starts,
    as in Kueue ({name, labels, annotations, nodeSelector, tolerations}). They apply once the check is Ready. `since` is
    when the state became so, in Kubernetes' form; empty: now.
    """

    state: AdmissionCheckStatus
    message: str = ""
    requeue_after_seconds: int | None = None
    pod_set_updates: Sequence[Mapping[str, Any]] = field(default_factory=tuple)
    since: str = ""


def names_answered_here(cluster: Cluster) -> set[str]:
    """Return the checks whose states kueueweb sets. All other states are set by their controllers."""
    checks = AdmissionCheck.objects.filter(cluster=cluster, controller_name__in=_OUR_CONTROLLERS)
    return set(checks.values_list("name", flat=True))


def set_check_state(
    cluster: Cluster,
    namespace: str,
    name: str,
    check: str,
    answer: CheckAnswer,
    *,
    actor: str,
    now: datetime | None = None,
) -> bool:
    """Store the answer, on which the engine acts. Returns whether anything changed.

    Raises `NotFound` for a missing workload or check; `Conflict` if the workload holds no quota (then there is
    nothing to check, and an eviction resets every check to Pending); `ManifestErrors` for invalid pod set updates.
    """
    now = now or timezone.now()
    with transaction.atomic():
        workload = Workload.objects.select_for_update().filter(cluster=cluster, namespace=namespace, name=name).first()
        if workload is None:
            raise NotFound(f"There is no workload {namespace}/{name} in cluster {cluster.name}.")
        states = [dict(state) for state in workload.admission_check_states]
        stored = next((state for state in states if state["name"] == check), None)
        if stored is None:
            raise NotFound(f"Workload {namespace}/{name} has no admission check {check!r}.")
        _refuse_out_of_turn(workload)
        if answer.pod_set_updates:
            names = set(workload.pod_sets.values_list("name", flat=True))
            answer = replace(answer, pod_set_updates=read_pod_set_updates(answer.pod_set_updates, names))
        if not _write(stored, answer, now):
            return False
        Workload.objects.filter(pk=workload.pk).update(admission_check_states=states, updated_at=now)
        log_event(
            workload,
            "AdmissionCheckUpdated",
            f"{check} is {answer.state}: {answer.message}",
            actor=actor,
            now=now,
            warning=answer.state is AdmissionCheckStatus.REJECTED,
        )
        wake_scheduler(cluster.name)
    return True


def _refuse_out_of_turn(workload: Workload) -> None:
    if workload.finished_at is not None:
        raise Conflict(f"Workload {workload.key} has ended.")
    if workload.quota_reserved_at is None:
        raise Conflict(f"Workload {workload.key} holds no quota, so there is nothing to check yet.")
    if workload.evicted_at is not None:
        raise Conflict(f"Workload {workload.key} is being evicted; its checks start over when it gets quota again.")


def _write(stored: dict[str, Any], answer: CheckAnswer, now: datetime) -> bool:
    """Write the answer into the stored state. False if nothing changed."""
    if stored["state"] != answer.state:
        stored["lastTransitionTime"] = answer.since or rfc3339(now)
    wanted: dict[str, Any] = {"state": answer.state.value, "message": answer.message[:_MAX_MESSAGE]}
    if answer.state is AdmissionCheckStatus.RETRY and answer.requeue_after_seconds is not None:
        wanted["requeueAfterSeconds"] = answer.requeue_after_seconds
    if answer.state is AdmissionCheckStatus.READY and answer.pod_set_updates and stored["state"] != answer.state:
        wanted["podSetUpdates"] = [dict(update) for update in answer.pod_set_updates]
    changed = any(stored.get(key) != value for key, value in wanted.items())
    stored.update(wanted)
    return changed
