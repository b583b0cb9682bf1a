"""Stores changes of Workload objects in rows, in a cluster where kueueweb serves them: creations, holds, releases and
ends."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from django.db import DataError, transaction

from accounts.models import Cluster
from accounts.services.apply_result import Submitted
from clusters.api_objects import JsonObject, Kind
from clusters.client import Listing, WatchEvent
from clusters.served.agreement import ABSENT, Side, Step, settle
from clusters.served.contents import FINALIZER, last_edit, note_absence, status_writer
from clusters.served.foreign_decisions import foreign_decisions, take_decisions
from clusters.served.workload_specs import KIND, WorkloadRow, follows_job, read_spec, workload_content, workload_rows
from clusters.sync.ownership import controller_uid
from clusters.sync.present import name_key, present
from clusters.sync.served_entries import gone_keys, locked_entries, new_entry, news_of, tell_loser, writer_of
from foundation.exceptions import Conflict, KueuewebError, ManifestErrors, NotFound
from foundation.wake_ups import request_push
from queues.manifests.workload import WorkloadSpec
from queues.models import ServedObject
from queues.services.admission_checks import CheckAnswer, names_answered_here, set_check_state
from queues.services.workload_objects import apply_workloads
from queues.services.workloads import change_priority, delete_workloads, hold, release
from scheduling.manifest import ValidationReport
from scheduling.model.vocabulary import AdmissionCheckStatus, WorkloadStatus

_log = logging.getLogger(__name__)

_MAX_PROBLEM: Final = 1024
_MAX_ACTOR: Final = 150
_ANSWER: Final = ("state", "message", "requeueAfterSeconds", "podSetUpdates")
"""The fields of its state that the controller of a check writes."""


class ServedWorkloadSync:
    """Makes rows of workloads follow edits of others in the cluster.

    A workload with a job follows its job: in its object, others may change only `active` and the priority. A workload
    without a job is created, changed and deleted like any other object. The controller of an admission check writes the
    check's state to the status, and a decision that another program writes there (`foreign_decisions`) is carried out.
    """

    def __init__(self, cluster: Cluster, kind: Kind) -> None:
        self._cluster = cluster
        self._api_version = kind.api_version

    def apply(self, items: Sequence[Listing | WatchEvent], now: float) -> None:
        """Applies lists and changes, in the order in which they came."""
        found = present(items, name_key)
        at = datetime.fromtimestamp(now, UTC)
        with transaction.atomic():
            known = locked_entries(self._cluster, KIND, found)
            gone = gone_keys(known, found, items)
            news = news_of(known, found)
            if not news and not gone:
                return
            rows = workload_rows(self._cluster, {*news, *gone})
            specs: dict[str, WorkloadSpec] = {}
            for key in gone:
                if known[key].uid:
                    note_absence(known[key], at)
                    known[key].row_version = 0
            answers = {
                key: _answers(known[key].status if key in known else {}, obj)
                for key, obj in news.items()
                if key in rows
            }
            decided = {
                key: foreign_decisions(_known_status(known.get(key), obj), obj)
                for key, obj in news.items()
                if key in rows
            }
            for key, obj in news.items():
                self._note(known.setdefault(key, new_entry(self._cluster, KIND, key)), obj, rows.get(key), specs)
            touched = {*news, *gone}
            for key in sorted(touched):
                self._follow(known[key], rows.get(key), specs.get(key), news.get(key), at)
            self._take_answers(known, news, answers, at)
            for key, decisions in decided.items():
                take_decisions(self._cluster, rows[key].row, decisions, at)
            rows = workload_rows(self._cluster, touched)
            for key in touched:
                _keep(known[key], rows.get(key))
            request_push(self._cluster.name)

    def _note(
        self, entry: ServedObject, obj: JsonObject, row: WorkloadRow | None, specs: dict[str, WorkloadSpec]
    ) -> None:
        metadata = obj["metadata"]
        spec, mistakes = read_spec(obj, self._api_version)
        entry.uid, entry.resource_version = metadata["uid"], metadata["resourceVersion"]
        entry.object_generation = metadata.get("generation") or 0
        entry.deleting = bool(metadata.get("deletionTimestamp"))
        entry.held = FINALIZER in (metadata.get("finalizers") or ())
        entry.status = obj.get("status") or {}
        entry.row_version = 0  # the push compares the status again
        edited_at, edited_by = last_edit(obj)
        entry.edited_at, entry.edited_by = edited_at, edited_by[:150]
        if mistakes:
            self._complain(entry, "; ".join(mistakes))
            return
        has_job = row.row.job_id is not None if row is not None else bool(controller_uid(obj))
        entry.content = ABSENT if entry.deleting else workload_content(spec, has_job=has_job)
        specs[entry.key] = spec

    def _follow(
        self,
        entry: ServedObject,
        row: WorkloadRow | None,
        spec: WorkloadSpec | None,
        obj: JsonObject | None,
        at: datetime,
    ) -> None:
        if row is not None and _has_ended(row) and entry.agreed == ABSENT:
            side = Side(ABSENT, at)  # an earlier object of this name
        else:
            side = row.side if row is not None else Side(ABSENT, at)
        settled = settle(entry.agreed, side, Side(entry.content, entry.edited_at or at))
        if settled.step is not Step.FOLLOW:
            return
        if row is not None and row.row.job_id is not None and entry.content == ABSENT:
            entry.agreed = ABSENT  # it belongs to its job: the push creates it again
            return
        if row is None and (obj is None or controller_uid(obj)):
            return  # its job is read first, and creates it
        if settled.overwrites:
            tell_loser(
                self._cluster, entry, "The edit here is overwritten by a later one in the cluster. Read it again, and "
                "repeat the edit if it is still wanted.",
            )  # fmt: skip
        try:
            with transaction.atomic():
                self._change(entry, row, spec, at)
        except (KueuewebError, DataError) as refused:
            self._complain(entry, str(refused))
            return
        after = workload_rows(self._cluster, {entry.key}).get(entry.key)
        if after is not None and after.row.job_id is not None and spec is not None and not follows_job(spec, after.row):
            entry.agreed = entry.content  # the push writes the fields again that follow from the job
            entry.problem = ""
            return
        entry.agreed = after.side.content if after is not None else ABSENT
        if entry.content != ABSENT:
            entry.content = entry.agreed  # including fields that the object omits, such as a class's priority
        entry.problem = ""

    def _change(self, entry: ServedObject, row: WorkloadRow | None, spec: WorkloadSpec | None, at: datetime) -> None:
        key, actor = (entry.namespace, entry.name), writer_of(entry)
        if entry.content == ABSENT:
            delete_workloads(self._cluster, [key], actor=actor, now=at)
            return
        if spec is None:
            return
        if row is None or row.row.job_id is None or (_has_ended(row) and entry.agreed == ABSENT):
            if row is not None and _has_ended(row) and entry.agreed == ABSENT:
                delete_workloads(self._cluster, [key], actor=actor, now=at)  # its name now belongs to another object
            submitted = Submitted(spec, ValidationReport(), self._api_version)
            apply_workloads(self._cluster, [submitted], actor=actor, submitted_by=actor, now=at)
            return
        if spec.active is not row.row.active:
            (release if spec.active else hold)(self._cluster, [key], actor=actor, now=at)
        asked = (spec.priority or 0, spec.priority_class_name)
        if asked != (row.row.priority, row.row.priority_class_name):
            change_priority(
                self._cluster, [key], asked[0], actor=actor, priority_class_name=spec.priority_class_name, now=at
            )

    def _take_answers(
        self,
        known: Mapping[str, ServedObject],
        news: Mapping[str, JsonObject],
        answers: Mapping[str, Sequence[JsonObject]],
        at: datetime,
    ) -> None:
        """Store the states that controllers of checks have written, but for the checks that we answer ourselves."""
        ours = names_answered_here(self._cluster) if any(answers.values()) else set()
        for key, states in answers.items():
            for state in states:
                if state["name"] not in ours:
                    self._take_answer(known[key], state, f"{status_writer(news[key])} in the cluster", at)

    def _take_answer(self, entry: ServedObject, state: JsonObject, actor: str, at: datetime) -> None:
        answer = CheckAnswer(
            AdmissionCheckStatus(state["state"]),
            str(state.get("message") or ""),
            state.get("requeueAfterSeconds"),
            state.get("podSetUpdates") or (),
            str(state.get("lastTransitionTime") or ""),
        )
        try:
            set_check_state(
                self._cluster, entry.namespace, entry.name, state["name"], answer, actor=actor[:_MAX_ACTOR], now=at
            )
        except (Conflict, NotFound) as refused:
            # It holds no quota, or no longer has such a check: the push writes our row again.
            _log.info("The answer of check %s of %s is not needed: %s", state["name"], entry, refused)
        except ManifestErrors as refused:
            self._complain(entry, f"status.admissionChecks: {state['name']}: {refused}")

    def _complain(self, entry: ServedObject, problem: str) -> None:
        entry.problem = problem[:_MAX_PROBLEM]
        _log.error("%s of cluster %s can't be followed: %s", entry, self._cluster.name, problem)


def _known_status(entry: ServedObject | None, obj: JsonObject) -> Mapping[str, Any]:
    """Return the status that this object had; empty for another object of the name."""
    return entry.status if entry is not None and entry.uid == obj["metadata"]["uid"] else {}


def _answers(before: Mapping[str, Any], obj: JsonObject) -> list[JsonObject]:
    """Return the states of checks that differ from before. An unchanged one answers an earlier reservation."""
    old = {each.get("name"): each for each in before.get("admissionChecks") or ()}
    return [
        each
        for each in (obj.get("status") or {}).get("admissionChecks") or ()
        if each.get("state") in set(AdmissionCheckStatus)
        and any(each.get(field) != old.get(each.get("name"), {}).get(field) for field in _ANSWER)
    ]


def _has_ended(row: WorkloadRow) -> bool:
    return bool(row.row.status == WorkloadStatus.FINISHED)


def _keep(entry: ServedObject, row: WorkloadRow | None) -> None:
    """Store the known state, and delete entries without an object on either side."""
    if (row is None or row.side.content == ABSENT) and not entry.uid:
        if entry.pk is not None:
            entry.delete()
        return
    if row is not None and row.side.content == entry.content:
        entry.agreed, entry.problem = entry.content, ""
    entry.keep_seen()
