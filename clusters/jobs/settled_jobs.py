"""Jobs over which a pass changed nothing: a list need not look at them again while they and their rows do not change.

A pass follows from the job, its rows, the cluster's configuration and the objects that it looks up. A list brings all
jobs of the cluster once a minute, nearly all of them as they were; to read a job's rows and to pass over it takes a
millisecond of processor time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

from django.db import connection

from accounts.models import Cluster
from clusters.api_objects import JsonObject
from clusters.jobs.framework.manifest import uid_of, version_of
from clusters.jobs.framework.store import Objects

LookUps = Mapping[tuple[str, str, str | None], Any]
"""Objects by kind, namespace and name; without a name, all of the kind in the namespace."""
_RowVersions = tuple[Hashable, ...]

# Each write of a row changes its `xmin`. A server that starts from a backup may give numbers again, which is why its
# start is a part of the versions.
_VERSIONS: Final = """
    SELECT job.uid::text, pg_postmaster_start_time(), job.xmin::text, workload.id, workload.xmin::text,
        (SELECT string_agg(pod_set.xmin::text, ' ' ORDER BY pod_set.id) FROM queues_podset AS pod_set
            WHERE pod_set.workload_id = workload.id)
    FROM queues_job AS job LEFT JOIN queues_workload AS workload ON workload.job_id = job.id
    WHERE job.cluster_id = %s AND job.uid = ANY(%s::uuid[])
    ORDER BY job.id, workload.id
"""


class Recorder:
    """The objects that passes look up; `taken` has those of the present pass, as they were found."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self.taken: dict[tuple[str, str, str | None], Any] = {}

    def begin(self) -> None:
        """Begin another pass."""
        self.taken = {}

    def get(self, kind: str, namespace: str, name: str) -> JsonObject | None:
        """Return the object; None if it does not exist. Raises ClusterError if the cluster does not answer."""
        found = self.taken[kind, namespace, name] = self._objects.get(kind, namespace, name)
        return found

    def list(self, kind: str, namespace: str = "") -> list[JsonObject]:
        """Return all objects of a kind in a namespace, by name."""
        found = self.taken[kind, namespace, None] = self._objects.list(kind, namespace)
        return found


@dataclass(frozen=True, slots=True)
class _Settled:
    version: str
    rows: _RowVersions
    looked_up: LookUps


class SettledJobs:
    """The settled jobs of one kind of a cluster, as they, their rows and what they looked up were."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._policy: tuple[Any, ...] = ()
        """The cluster's configuration and mode, which every pass follows."""
        self._settled: dict[str, _Settled] = {}
        self._rows: dict[str, _RowVersions] = {}
        """The versions of the rows of the jobs in the present list, read before anything else of them was."""

    def begin(self, names: Mapping[str, Sequence[str]]) -> None:
        """Note the beginning of a list of the jobs with these uids, each with the uids that its row may have. All other
        jobs are forgotten."""
        policy = self._present_policy()
        if self._policy != policy:
            self._policy = deepcopy(policy)
            self._settled.clear()
        self._settled = {uid: self._settled[uid] for uid in names if uid in self._settled}
        self._rows = self._row_versions(names)

    def end(self) -> None:
        """Note that the list has been processed. Jobs are noted only during lists, so that a change of one job costs
        nothing."""
        self._rows = {}

    def unsettled(self, jobs: Iterable[JsonObject], objects: Objects) -> list[JsonObject]:
        """Return the jobs that a pass may change. Raises ClusterError if the cluster does not answer."""
        return [job for job in jobs if not self._is_settled(job, objects)]

    def note(self, job: JsonObject, looked_up: LookUps) -> None:
        """Note that a pass over the job changed nothing."""
        rows = self._rows.get(uid_of(job))
        if rows is not None and version_of(job):
            self._settled[uid_of(job)] = _Settled(version_of(job), rows, looked_up)

    def _present_policy(self) -> tuple[Any, ...]:
        cluster = self._cluster
        return cluster.configuration, cluster.mode, cluster.is_mirrored, cluster.serves_kueue, cluster.kueue_is_alive

    def _is_settled(self, job: JsonObject, objects: Objects) -> bool:
        settled = self._settled.get(uid_of(job))
        if settled is None or settled.version != version_of(job) or settled.rows != self._rows.get(uid_of(job)):
            return False
        return all(
            found == (objects.list(kind, namespace) if name is None else objects.get(kind, namespace, name))
            for (kind, namespace, name), found in settled.looked_up.items()
        )

    def _row_versions(self, names: Mapping[str, Sequence[str]]) -> dict[str, _RowVersions]:
        """Return the versions of the rows of these jobs by the jobs' uids, by one query."""
        found: dict[str, list[Hashable]] = defaultdict(list)
        if names:
            with connection.cursor() as cursor:
                cursor.execute(_VERSIONS, [self._cluster.pk, [uid for uids in names.values() for uid in uids]])
                for uid, *versions in cursor.fetchall():
                    found[uid].append(tuple(versions))
        return {uid: tuple(row for each in uids for row in found.get(each, ())) for uid, uids in names.items()}
