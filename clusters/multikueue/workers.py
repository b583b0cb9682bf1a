"""The workers of a manager: each has a thread of its own, so that an unresponsive worker does not delay the others.

Nothing here touches the database. As in Kueue, a worker that fails is retried after 5 s, 10 s, 20 s ... 320 s.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from clusters.api_errors import ClusterError
from clusters.api_objects import PODS, JsonObject, Kind
from clusters.client import ClusterClient
from clusters.jobs.framework.job_kind import JobKind
from clusters.jobs.registry import JOB_KINDS
from clusters.multikueue.local_jobs import Alike
from clusters.multikueue.worker_copies import Copy, is_ours
from clusters.multikueue.worker_queues import WorkerQueues, read_queues
from clusters.served.contents import FINALIZER
from clusters.served.kueue_kinds import KUEUE_KINDS
from clusters.served.workload_specs import spec_in
from queues.manifests.kueue_keys import MULTIKUEUE_ORIGIN
from queues.manifests.pod_group import POD_GROUP

_log = logging.getLogger(__name__)

_PATIENCE_SECONDS: Final = 5.0
"""How long a pass waits for its workers; later answers are used in a later pass."""
_QUEUES_SECONDS: Final = 2.0
"""How long the knowledge about a worker's queues is used."""
_FIRST_WAIT: Final = 5.0
_MAX_DOUBLINGS: Final = 6
_MAX_WORKERS: Final = 64
_WORKLOADS: Final = KUEUE_KINDS["Workload"]
_pool: Final = ThreadPoolExecutor(_MAX_WORKERS, thread_name_prefix="multikueue")


_Jobs = dict[str, dict[tuple[str, str], JsonObject]]
"""Kind -> (namespace, name) -> the job in the worker, of the kinds that were listed."""


@dataclass(slots=True)
class Task:
    """The steps for one workload in a worker, and their results.

    * create, change: the copy that is made, or the fields of its spec, as v1beta2 has them, that it gets.
    * remove: the copy that is deleted, with its job unless `keep_job`.
    * run: the jobs to create unless they exist, or, without `makes`, only to read; found: the created and the read
      ones.
    * answered: whether the worker carried the steps out, or refused them for good.
    """

    key: str
    create: Callable[[Kind], JsonObject] | None = None
    change: JsonObject | None = None
    remove: Copy | None = None
    keep_job: bool = False
    run: Sequence[tuple[JobKind, JsonObject]] = ()
    makes: bool = True
    found: list[JsonObject] = field(default_factory=list)
    created: bool = False
    error: str = ""
    answered: bool = False


class Worker:
    """A worker's API server, with the state that is kept between passes."""

    def __init__(self, name: str, signature: str, client: ClusterClient, origin: str) -> None:
        self.name = name
        self.signature = signature
        self.origin = origin
        self.copies: dict[str, Copy] = {}
        self.queues: WorkerQueues | None = None
        """None until they were read."""
        self.error: ClusterError | None = None
        self.failures = 0
        self.not_before = 0.0
        self._client = client
        self._resource: Kind | None = None
        self._queues_at = 0.0
        self._busy: Future[None] | None = None

    def is_due(self, now: float) -> bool:
        """Return whether it is due: it has answered the last request, and does not back off."""
        return (self._busy is None or self._busy.done()) and now >= self.not_before

    def start(self, act: Callable[[], None]) -> Future[None]:
        self._busy = _pool.submit(act)
        return self._busy

    def look(self, now: float, *, at_queues: bool = False) -> None:
        """List the copies of this origin, and the queues if they are wanted. A failure is kept in `error`."""
        try:
            resource = self._served()
            listing = self._client.list(resource, label_selector=f"{MULTIKUEUE_ORIGIN}={self.origin}")
            if at_queues and (self.queues is None or now - self._queues_at >= _QUEUES_SECONDS):
                self.queues, self._queues_at = self._list_queues(resource.api_version), now
        except ClusterError as error:
            self._fail(error, now)
            return
        self.copies = {copy.key: copy for copy in map(Copy, listing.items)}
        self.error, self.failures = None, 0

    def act(self, tasks: Sequence[Task], now: float) -> None:
        """Execute each task; a refused one does not delay the others."""
        jobs: _Jobs = {}
        for task in tasks:
            try:
                self._do(task, jobs)
                task.answered = True
            except ClusterError as error:
                task.error = str(error)
                task.answered = not error.passes
                if error.status == 0:
                    self._fail(error, now)
                    return
                _log.warning("Worker %s, workload %s: %s", self.name, task.key, error)

    def _served(self) -> Kind:
        if self._resource is None:
            served = self._client.served(_WORKLOADS)
            self._resource = next((kind for kind in _WORKLOADS if kind in served), None)
        if self._resource is None:
            text = "it does not serve Kueue's Workloads: run Kueue there, or have kueueweb serve Kueue's objects"
            raise ClusterError(0, "ClientConnectionFailed", text)
        return self._resource

    def _list_queues(self, version: str) -> WorkerQueues:
        """Return the queues, or why this account may not read them: its workloads go on all the same."""
        local, shared = (
            next(kind for kind in KUEUE_KINDS[name] if kind.api_version == version)
            for name in ("LocalQueue", "ClusterQueue")
        )
        try:
            return read_queues(self._client.list(local).items, self._client.list(shared).items)
        except ClusterError as error:
            if error.status == 0:
                raise
            return WorkerQueues({}, {}, str(error))

    def _fail(self, error: ClusterError, now: float) -> None:
        self.error, self.failures, self._resource = error, self.failures + 1, None
        self.queues = None
        self.not_before = now + _FIRST_WAIT * 2 ** min(self.failures - 1, _MAX_DOUBLINGS)

    def _do(self, task: Task, jobs: _Jobs) -> None:
        resource = self._served()
        namespace, _, name = task.key.partition("/")
        if task.remove is not None:
            self._remove(resource, task.remove, keep_job=task.keep_job)
        if task.create is not None:
            self._create(resource, task)
        if task.change is not None:
            self._client.patch(resource, namespace, name, {"spec": spec_in(task.change, resource.api_version)})
        for kind, manifest in task.run:
            job = self._job(kind, manifest, jobs, make=task.makes)
            if job is not None:
                task.found.append(job)

    def _create(self, resource: Kind, task: Task) -> None:
        assert task.create is not None  # the caller has checked this
        try:
            self._client.create(resource, task.create(resource))
        except ClusterError as error:
            if not error.conflict:  # an earlier pass created it, but the answer was lost
                raise
        else:
            task.created = True

    def _job(self, kind: JobKind, manifest: JsonObject, jobs: _Jobs, *, make: bool) -> JsonObject | None:
        """Return the job, created if it is needed and missing. Raises ClusterError if another one has its name."""
        if kind.kind not in jobs:  # one list for all of the kind: many run here, and each pass reads them all
            found = self._client.list(kind.resource, label_selector=f"{MULTIKUEUE_ORIGIN}={self.origin}").items
            jobs[kind.kind] = {(each["metadata"]["namespace"], each["metadata"]["name"]): each for each in found}
        metadata = manifest["metadata"]
        there = jobs[kind.kind].get((metadata["namespace"], metadata["name"]))
        if there is not None or not make:
            return there
        try:
            return self._client.create(kind.resource, manifest)
        except ClusterError as error:
            if not error.conflict:
                raise
            text = f"another {kind.kind} {metadata['name']} is in worker {self.name}"
            raise ClusterError(409, "AlreadyExists", text) from error

    def _remove(self, resource: Kind, copy: Copy, *, keep_job: bool) -> None:
        """First the job, which ends with its pods; then the copy."""
        metadata = copy.obj["metadata"]
        namespace = metadata["namespace"]
        if not keep_job and not self._remove_job(namespace, *copy.job):
            return  # its pods are still stopping: a later pass deletes the copy
        finalizers = metadata.get("finalizers") or []
        if FINALIZER in finalizers:
            left = {"finalizers": [each for each in finalizers if each != FINALIZER]}
            self._client.patch(resource, namespace, metadata["name"], {"metadata": left})
        self._client.delete(resource, namespace, metadata["name"], uid=metadata["uid"])

    def _remove_job(self, namespace: str, kind_name: str, name: str) -> bool:
        """Delete a job that this manager created; return whether it is gone, together with its pods unless its kind
        creates parts again. For a group of pods, this means all of its pods."""
        if kind_name == POD_GROUP:
            return self._remove_group(namespace, name)
        kind = JOB_KINDS.get(kind_name)
        if kind is None:
            return True
        there = self._client.get(kind.resource, namespace, name)
        if there is None or not is_ours(there, self.origin):
            return True
        if not there["metadata"].get("deletionTimestamp"):
            uid = there["metadata"]["uid"]
            propagation = "Background" if kind.remakes_parts else "Foreground"
            self._client.delete(kind.resource, namespace, name, uid=uid, propagation=propagation)
        return self._client.get(kind.resource, namespace, name) is None

    def _remove_group(self, namespace: str, name: str) -> bool:
        selector = f"{MULTIKUEUE_ORIGIN}={self.origin},kueue.x-k8s.io/pod-group-name={name}"
        left = self._client.list(PODS, namespace, label_selector=selector).items
        for pod in left:
            if not pod["metadata"].get("deletionTimestamp"):
                self._client.delete(PODS, namespace, pod["metadata"]["name"], uid=pod["metadata"]["uid"])
        return not left


class Workers:
    """All workers of one manager."""

    def __init__(self) -> None:
        self.copied: dict[str, Alike] = {}
        """The statuses that were copied to the manager's jobs."""
        self._known: dict[str, Worker] = {}
        self._lock = threading.Lock()

    def keep(self, name: str, signature: str, connect: Callable[[], ClusterClient], origin: str) -> Worker:
        """Return the worker with that name, reconnected if its address has changed. Raises ClusterError."""
        with self._lock:
            worker = self._known.get(name)
            if worker is None or (worker.signature, worker.origin) != (signature, origin):
                worker = self._known[name] = Worker(name, signature, connect(), origin)
            return worker

    def forget(self, names: Sequence[str]) -> None:
        """Keep only these workers."""
        with self._lock:
            self._known = {name: worker for name, worker in self._known.items() if name in names}


def look_at(workers: Sequence[Worker], now: float, *, at_queues: bool = False) -> list[Worker]:
    """List the objects of each worker. Returns the workers that answered in time, without a failure."""
    looks = {worker: partial(worker.look, now, at_queues=at_queues) for worker in workers if worker.is_due(now)}
    asked = {worker: worker.start(look) for worker, look in looks.items()}
    done, _ = wait(asked.values(), timeout=_PATIENCE_SECONDS)
    return [worker for worker, future in asked.items() if future in done and worker.error is None]


def tell(tasks: Mapping[Worker, Sequence[Task]], now: float) -> set[Worker]:
    """Run each worker's tasks. Returns the workers that completed all of them in time."""
    told = {worker: worker.start(partial(worker.act, listed, now)) for worker, listed in tasks.items() if listed}
    done, _ = wait(told.values(), timeout=_PATIENCE_SECONDS)
    return {worker for worker, future in told.items() if future in done}
