"""The objects that the rules look up in a running cluster: our rows, and the cluster's own objects."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from typing import Final

from accounts.models import MIRRORED_MODES, Cluster
from clusters.api_objects import JsonObject
from clusters.client import ClusterClient
from clusters.jobs.cluster_objects import RowsAndCluster
from clusters.jobs.framework.context import JobContext
from clusters.jobs.framework.errors import FieldErrors
from clusters.jobs.framework.job_kind import JobKind
from clusters.jobs.framework.manifest import labels_of, name_of, namespace_of, uid_of
from clusters.jobs.integrations import job_context
from clusters.jobs.objects import JOB_UID_LABEL
from clusters.jobs.submitter import submitter_notes, submitter_of
from clusters.webhook.admission import Standing
from clusters.webhook.policy import person_of, policy_errors
from clusters.webhook.reviews import AdmissionRequest
from gpus.manifests import configured_vendors
from gpus.vendors import VENDORS
from queues.models import Job, Workload
from scheduling.model.vendor import DeviceVendor
from scheduling.model.vocabulary import WorkloadStatus

_CACHED_SECONDS: Final = 2.0
"""The pods of a job come in bursts, and have one owner."""


class ClusterSurroundings:
    """The surroundings of the jobs of one cluster.

    * trusted: the accounts with which kueueweb writes to it.
    * cached_seconds: how old the cluster's settings and owners may be.
    """

    def __init__(
        self,
        cluster: Cluster,
        client: ClusterClient,
        trusted: frozenset[str],
        *,
        cached_seconds: float = _CACHED_SECONDS,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.trusted = trusted
        self._cluster = cluster
        self._objects = RowsAndCluster(cluster, client, cached_seconds, clock)
        self._cached_seconds = cached_seconds
        self._clock = clock
        self._now = now
        self._read_until = clock()

    def observes_only(self) -> bool:
        return self._current().mode in MIRRORED_MODES

    def serves_kueue(self) -> bool:
        return self._current().serves_kueue

    def context(self) -> JobContext:
        return job_context(self._current().configuration, self._objects)

    def vendors(self) -> Sequence[DeviceVendor]:
        if self._current().hami_binds:
            return ()  # HAMi's own webhook mutates the pods
        configured = self._current().device_plugin_configuration
        return configured_vendors(configured.get("settings") or {}, VENDORS)

    def _current(self) -> Cluster:
        if self._clock() >= self._read_until:
            self._cluster = Cluster.objects.get(pk=self._cluster.pk)
            self._read_until = self._clock() + self._cached_seconds
        return self._cluster

    def standing(self, kind: JobKind, job: JsonObject) -> Standing:
        """Return the state by the rows of the job's workloads. Any user can write a label: it counts only on a job
        of the row's name."""
        uids = {found for text in (uid_of(job), labels_of(job).get(JOB_UID_LABEL, "")) if (found := _uid(text))}
        rows = Job.objects.filter(
            cluster=self._cluster, kind=kind.kind, namespace=namespace_of(job), name=name_of(job), uid__in=uids
        )
        unfinished = Workload.objects.filter(job__in=rows).exclude(status=WorkloadStatus.FINISHED)
        states = list(unfinished.values_list("status", "evicted_at"))
        if not states:
            return Standing.UNKNOWN
        admitted = any(status == WorkloadStatus.ADMITTED and evicted_at is None for status, evicted_at in states)
        return Standing.ADMITTED if admitted else Standing.WAITING

    def submitter_notes(self, request: AdmissionRequest, job: JsonObject) -> dict[str, str]:
        uid = uid_of(request.old)  # an update may leave it out of the new object
        return submitter_notes(self._cluster.name, job, person_of(request), self._now(), uid=uid)

    def submitter_of(self, job: JsonObject) -> str:
        return submitter_of(self._cluster.name, job)

    def policy_errors(self, request: AdmissionRequest, context: JobContext) -> FieldErrors:
        return policy_errors(self._cluster, request, context)


def _uid(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text)
    except ValueError:
        return None
