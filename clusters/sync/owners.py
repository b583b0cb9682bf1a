"""Whether a job that was found in the cluster runs when another one does, by Kueue's rule over its owners."""

from __future__ import annotations

from clusters.client import REPLICA_SETS, ClusterClient, JsonObject
from clusters.jobs.framework.context import IntegrationSettings, JobContext
from clusters.jobs.framework.identity import managed_ancestor
from clusters.jobs.registry import JOB_KINDS, KINDS


class _Live:
    """Owners, asked for one by one."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client

    def get(self, kind: str, namespace: str, name: str) -> JsonObject | None:
        resource = REPLICA_SETS if kind == REPLICA_SETS.kind else JOB_KINDS[kind].resource
        return self._client.get(resource, namespace, name)

    def list(self, kind: str, namespace: str = "") -> list[JsonObject]:
        return list(self._client.list(JOB_KINDS[kind].resource, namespace).items)


def is_started_by_its_owner(job: JsonObject, client: ClusterClient) -> bool:
    """Whether a managed owner decides when it runs. Raises JobError for an owner that is missing, and ClusterError."""
    if not job["metadata"].get("ownerReferences"):
        return False
    return managed_ancestor(job, JobContext(IntegrationSettings(), _Live(client), KINDS)) is not None
