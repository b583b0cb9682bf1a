"""The controller of MultiKueue: one pass over a manager's workloads and its workers.

A pass reads the workers' objects, decides about each workload, changes the workers, and writes the results to our rows.
Every step can be repeated: after a crash, the next pass continues from the state that it finds.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import orjson
from django.db import transaction

from accounts.models import Cluster
from clusters.api_errors import ClusterError
from clusters.api_objects import SECRETS, JsonObject
from clusters.client import ClusterClient
from clusters.client_credentials import connect_kubeconfig
from clusters.connection import client_for
from clusters.jobs.framework.job_kind import JobKind
from clusters.multikueue.decisions import Answer, Verdict, decide
from clusters.multikueue.decisions import Workers as Reach
from clusters.multikueue.kubeconfig import SECRET_KEY, checked_path, read_kubeconfig
from clusters.multikueue.local_jobs import LocalJobs
from clusters.multikueue.manager_quotas import automate_quotas, is_wanted
from clusters.multikueue.manager_rows import Case, cases_of, configs_of, together, write_dispatch
from clusters.multikueue.settings import Settings, read_settings
from clusters.multikueue.status import note_checks, note_connection
from clusters.multikueue.worker_copies import Copy, job_copy, workload_copy
from clusters.multikueue.worker_queues import WorkerQueues
from clusters.multikueue.workers import Task, Worker, Workers, look_at, tell
from foundation.advisory_locks import LockedWork, try_lock
from foundation.exceptions import KueuewebError
from foundation.transactions import unnoticed_transaction
from queues.kinds.multikueue import LocationType
from queues.manifests.pod_group import POD_GROUP
from queues.models import AdmissionCheck, Job, MultiKueueCluster, PodSet, Workload
from queues.services.admission_checks import CheckAnswer, set_check_state
from queues.services.workload_events import log_event
from queues.services.workloads import record_finished, record_pods_ready
from scheduling.model.vocabulary import AdmissionCheckStatus, FinishedReason, WorkloadStatus
from scheduling.state.second_pass import MULTIKUEUE, PENDING, READY

_log = logging.getLogger(__name__)

_MAX_TURNS: Final = 3
"""Passes in a row, as long as one leads to another."""
_known: Final[dict[int, Workers]] = defaultdict(Workers)


def follow_multikueue(
    manager: Cluster,
    client: ClusterClient | None = None,
    clock: Callable[[], float] = time.time,
    workers: Workers | None = None,
) -> None:
    """Run up to three passes over a manager's workloads and their copies, until a pass changes nothing.

    Does nothing while another process does this, another scheduler decides in the cluster, or another installation of
    kueueweb pushes to it.
    """
    if manager.is_mirrored or manager.kueue_is_alive or manager.lease_holder:
        return  # another scheduler decides there or pushes to it
    with try_lock(LockedWork.MULTIKUEUE, manager.pk) as mine:
        if not mine:
            return
        known = workers if workers is not None else _known[manager.pk]
        for _ in range(_MAX_TURNS):
            if not _Pass(manager, client or client_for(manager), known, clock()).run():
                return


def managers() -> list[str]:
    """Return the clusters with checks of MultiKueue, or with workers."""
    checks = AdmissionCheck.objects.filter(controller_name=MULTIKUEUE).values_list("cluster__name", flat=True)
    workers = MultiKueueCluster.objects.values_list("cluster__name", flat=True)
    return sorted({*checks, *workers})


class _Pass:
    def __init__(self, manager: Cluster, client: ClusterClient, workers: Workers, now: float) -> None:
        self._manager = manager
        self._client = client
        self._workers = workers
        self._seconds = now
        self._now = datetime.fromtimestamp(now, UTC)
        self._settings: Settings = read_settings(manager.configuration)
        self._jobs = LocalJobs(client, workers.copied, now)
        self._connected: dict[str, WorkerQueues | None] = {}
        self._changed = False

    def run(self) -> bool:
        """Run one pass; return whether it made a change that another pass may continue from."""
        rows = list(MultiKueueCluster.objects.filter(cluster=self._manager).order_by("pk"))
        reached = self._look(rows)
        configs = configs_of(self._manager)
        note_checks(self._manager, configs, {row.name: row.is_active for row in rows})
        automate_quotas(self._manager, self._connected, self._now)
        cases = cases_of(self._manager, configs)
        tasks: dict[Worker, list[Task]] = defaultdict(list)
        verdicts: list[tuple[Case, Verdict]] = []
        alone = together(cases)
        for case in cases:
            verdict = self._decide(case, configs.get(case.check), reached, alone)
            if verdict is not None:
                verdicts.append((case, verdict))
                self._instruct(case, verdict, reached, tasks)
        self._sweep(cases, reached, tasks)
        tell(tasks, self._seconds)
        done = {(worker.name, task.key): task for worker, listed in tasks.items() for task in listed}
        for case, verdict in verdicts:
            self._follow(case, verdict, done)
        return self._changed

    # The workers

    def _look(self, rows: Sequence[MultiKueueCluster]) -> dict[str, Worker]:
        """Return the reachable workers with their workloads. Record in each row whether its worker is connected."""
        found: dict[str, tuple[MultiKueueCluster, Worker]] = {}
        for row in rows:
            try:
                found[row.name] = (row, self._worker(row))
            except ClusterError as error:
                note_connection(row, error, self._now)
        self._workers.forget(list(found))
        workers = [worker for _, worker in found.values()]
        answered = look_at(workers, self._seconds, at_queues=is_wanted(self._manager))
        self._connected = {worker.name: worker.queues for worker in workers if worker.error is None}
        for row, worker in found.values():
            if worker in answered or worker.error is not None:
                note_connection(row, worker.error, self._now)
        return {worker.name: worker for worker in answered}

    def _worker(self, row: MultiKueueCluster) -> Worker:
        if row.cluster_profile:
            known = Cluster.objects.filter(name=row.cluster_profile).first()
            problem = self._refuses(known, row.cluster_profile)
            if known is None or problem:
                raise ClusterError(0, "BadClusterProfile", problem)
            return self._workers.keep(
                row.name, f"cluster {known.pk} {known.server_url}", partial(client_for, known), self._settings.origin
            )
        content = self._kubeconfig(row.kube_config)
        signature = hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS, default=str)).hexdigest()
        return self._workers.keep(row.name, signature, partial(connect_kubeconfig, content), self._settings.origin)

    def _refuses(self, known: Cluster | None, name: str) -> str:
        if known is None:
            return f"no cluster {name!r} is registered here"
        if known.is_mirrored:
            return f"cluster {name} is in mode {known.mode}: nothing is written to it"
        if self._manager.name not in known.accepts_workloads_from:
            return (
                f"cluster {name} does not accept workloads of cluster {self._manager.name}: an admin of that "
                "cluster can change this"
            )
        return ""

    def _kubeconfig(self, source: Mapping[str, str]) -> JsonObject:
        location = source.get("location", "")
        if source.get("locationType") == LocationType.FILE:
            try:
                return read_kubeconfig(Path(checked_path(location)).read_bytes())
            except OSError as error:
                raise ClusterError(0, "BadKubeConfig", f"the kubeconfig {location} can't be read: {error}") from error
        secret = self._client.get(SECRETS, self._settings.namespace, location)
        encoded = ((secret or {}).get("data") or {}).get(SECRET_KEY)
        if encoded is None:
            where = f"{self._settings.namespace}/{location}"
            raise ClusterError(0, "BadKubeConfig", f"Secret {where} with the key {SECRET_KEY} does not exist")
        return read_kubeconfig(_decoded(encoded))

    # The workloads

    def _decide(
        self, case: Case, order: Sequence[str] | None, reached: Mapping[str, Worker], only: Mapping[str, str | None]
    ) -> Verdict | None:
        copies = {name: self._copy(worker, case) for name, worker in reached.items()}
        if case.wants and case.state is not AdmissionCheckStatus.REJECTED and (refusal := case.refusal()):
            self._answer(case, Answer(AdmissionCheckStatus.REJECTED, refusal), None)
            return None
        if case.wants:
            listed = order if order is not None else ()
            copies = {name: copies[name] for name in copies if name in listed}
        return decide(
            case.local(only.get(case.key)), case.dispatch, Reach(order or (), copies), self._settings, self._now
        )

    def _copy(self, worker: Worker, case: Case) -> Copy | None:
        found = worker.copies.get(case.key)
        return found if found is not None and found.owner in ("", self._owner(case)) else None

    def _owner(self, case: Case) -> str:
        return f"{self._manager.name}/{case.workload.uid}"

    def _instruct(
        self, case: Case, verdict: Verdict, reached: Mapping[str, Worker], tasks: dict[Worker, list[Task]]
    ) -> None:
        for name in {*verdict.create, *verdict.remove, *verdict.change, *([verdict.run] if verdict.run else [])}:
            task = Task(case.key)
            if name in verdict.remove:
                task.remove = reached[name].copies[case.key]
                task.keep_job = self._shares_job(case)
            if name in verdict.create:
                task.create = partial(self._made, case)
            if name in verdict.change:
                spec = case.manifest()["spec"]
                task.change = {key: spec.get(key) for key in ("priority", "priorityClassRef")}
            if name == verdict.run:
                task.run, task.makes = self._jobs_of(case), verdict.finish is None
            tasks[reached[name]].append(task)

    @staticmethod
    def _shares_job(case: Case) -> bool:
        """Return whether the job has other workloads that continue."""
        job = case.workload.job
        others = Workload.objects.filter(job=job, quota_reserved_at__isnull=False).exclude(pk=case.workload.pk)
        return job is not None and others.exclude(status=WorkloadStatus.FINISHED).exists()

    def _made(self, case: Case, resource: Any) -> JsonObject:
        job = case.workload.job
        assert job is not None  # workloads without a job are rejected
        named = (job.kind, job.name)
        return workload_copy(case.manifest(), self._owner(case), self._settings.origin, named, resource)

    def _jobs_of(self, case: Case) -> list[tuple[JobKind, JsonObject]]:
        kind, job = case.kind, case.workload.job
        if kind is None or job is None:
            return []
        rows = Job.objects.filter(group=job).order_by("pk") if job.kind == POD_GROUP else [job]
        return [(kind, self._job(row, kind, case)) for row in rows]

    def _job(self, row: Job, kind: JobKind, case: Case) -> JsonObject:
        metadata = {**(row.manifest.get("metadata") or {}), "name": row.name, "namespace": row.namespace}
        manifest = {**row.manifest, "metadata": metadata}
        return job_copy(manifest, kind, str(row.uid), case.workload.name, self._settings.origin)

    def _sweep(self, cases: Sequence[Case], reached: Mapping[str, Worker], tasks: dict[Worker, list[Task]]) -> None:
        """Copies that no longer belong to any workload here: they were left in a worker that was unreachable."""
        live = {case.key: self._owner(case) for case in cases}
        mine = f"{self._manager.name}/"
        for worker in reached.values():
            for key, copy in worker.copies.items():
                foreign = copy.owner and not copy.owner.startswith(mine)
                if not foreign and (key not in live or (copy.owner and copy.owner != live[key])):
                    tasks[worker].append(Task(key, remove=copy))

    # The effects on our rows

    def _follow(self, case: Case, verdict: Verdict, done: Mapping[tuple[str, str], Task]) -> None:
        task = done.get((verdict.run, case.key))
        self._count(case, verdict, done)
        found = list(task.found) if task is not None else []
        if verdict.finish is not None:
            if task is not None and task.answered:
                self._finish(case, verdict.finish, found)
            return
        if verdict.run and task is not None and not found:
            verdict.answer, verdict.dispatch = None, case.dispatch  # the cluster could not create its job yet
            self._complain(case, verdict.run, task.error)
        dispatch = write_dispatch(verdict.dispatch)
        if verdict.answer is not None and (verdict.answer.state, verdict.answer.message) != (case.state, case.message):
            self._answer(case, verdict.answer, dispatch)
        elif dispatch != case.workload.multikueue:
            self._keep(case, dispatch)
        if found:
            self._jobs.follow(case, found)
            self._note_readiness(case, found)

    def _count(self, case: Case, verdict: Verdict, done: Mapping[tuple[str, str], Task]) -> None:
        for name in verdict.create | verdict.remove:
            task = done.get((name, case.key))
            if task is not None and (task.created or task.remove is not None) and not task.error:
                self._changed = True
            elif task is not None and task.error and name in verdict.create:
                self._complain(case, name, task.error)

    def _complain(self, case: Case, worker: str, error: str) -> None:
        """Write the error into the message of the waiting check."""
        if error and case.state is AdmissionCheckStatus.PENDING and case.message != (text := f'"{worker}": {error}'):
            self._answer(case, Answer(AdmissionCheckStatus.PENDING, text), None)

    def _answer(self, case: Case, answer: Answer, dispatch: dict[str, Any] | None) -> None:
        """Answer the check, with where it was sent, in one transaction: the engine sees both or neither."""
        row = case.workload
        try:
            with transaction.atomic():
                Workload.objects.select_for_update(no_key=True).get(pk=row.pk)
                if dispatch is not None:
                    Workload.objects.filter(pk=row.pk).update(multikueue=dispatch)
                if answer.state is AdmissionCheckStatus.READY:
                    _settle_topology(row)
                told = CheckAnswer(answer.state, answer.message)
                if set_check_state(
                    self._manager, row.namespace, row.name, case.check, told, actor=case.check, now=self._now
                ):
                    self._changed = True
                    if answer.state in (AdmissionCheckStatus.READY, AdmissionCheckStatus.RETRY):
                        log_event(row, "MultiKueue", answer.message, actor=case.check, now=self._now)
        except KueuewebError as error:
            # The workload was cancelled or evicted meanwhile.
            _log.info("check %s of %s: the answer is no longer needed: %s", case.check, row, error)

    @staticmethod
    def _keep(case: Case, dispatch: dict[str, Any]) -> None:
        with unnoticed_transaction():
            Workload.objects.filter(pk=case.workload.pk).update(multikueue=dispatch)

    def _finish(self, case: Case, ending: tuple[str, str], found: Sequence[JsonObject]) -> None:
        """Our workload ends as its copy has, after its job shows how: its end deletes the job in the worker."""
        if self._jobs.follow(case, found):
            return
        reason, message = ending
        known = FinishedReason(reason) if reason in set(FinishedReason) else FinishedReason.SUCCEEDED
        key = (case.workload.namespace, case.workload.name)
        if record_finished(self._manager, [key], known, message, actor=case.check, now=self._now):
            self._changed = True

    def _note_readiness(self, case: Case, found: Sequence[JsonObject]) -> None:
        """Record for an admitted workload whether its pods, which run in the worker, are ready, by the jobs there."""
        kind, row = case.kind, case.workload
        if kind is None or row.status != WorkloadStatus.ADMITTED:
            return
        ready = self._jobs.are_ready(kind, found)
        if ready != (row.pods_ready_at is not None):
            key = (row.namespace, row.name)
            recovering = any(each.get("type") == "PodsReady" and row.pods_ready_at for each in row.conditions)
            record_pods_ready(self._manager, [key], ready=ready, recovering=recovering, actor=case.check, now=self._now)


def _settle_topology(row: Workload) -> None:
    """The worker has placed the pods: no nodes are chosen here."""
    for pod_set in PodSet.objects.filter(workload=row, topology_assignment__delayed=PENDING):
        assigned = {**(pod_set.topology_assignment or {}), "delayed": READY}
        PodSet.objects.filter(pk=pod_set.pk).update(topology_assignment=assigned)


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ClusterError(0, "BadKubeConfig", f"the kubeconfig is not base64: {error}") from error
