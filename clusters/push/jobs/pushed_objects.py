"""Jobs and pods of rows in the cluster: finds, creates and changes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from accounts.models import Cluster
from clusters.api_errors import ClusterError
from clusters.api_objects import JsonObject
from clusters.client import ClusterClient
from clusters.jobs.framework.job_kind import JobKind
from clusters.jobs.job_writes import newer, patch
from clusters.jobs.objects import JOB_UID_LABEL, JobSource
from clusters.jobs.registry import JOB_KINDS
from clusters.push.namespaces import make_namespace

_LIST_FROM: Final = 20
_MAX_ATTEMPTS: Final = 5


class PushedObjects:
    """The objects of one cluster that a sweep is about."""

    def __init__(self, cluster: Cluster, client: ClusterClient) -> None:
        self._cluster = cluster
        self.client = client
        self._listed: dict[str, dict[tuple[str, str], JsonObject]] = {}

    @property
    def has_listed(self) -> bool:
        """Return whether the last look-up listed objects, which can take seconds."""
        return bool(self._listed)

    def look_up(self, counts: Counter[str]) -> None:
        """List the kinds with many needed objects; this costs less than a request for each object."""
        self._listed = {}
        for kind, count in counts.items():
            if kind in JOB_KINDS and count >= _LIST_FROM:
                items = self.client.list(JOB_KINDS[kind].resource).items
                self._listed[kind] = {(item["metadata"]["namespace"], item["metadata"]["name"]): item for item in items}

    def get(self, source: JobSource) -> JsonObject | None:
        """Return the object of that name."""
        kind = source.kind.resource
        if kind.kind in self._listed:
            return self._listed[kind.kind].get((source.namespace, source.name))
        return self.client.get(kind, source.namespace, source.name)

    def there(self, source: JobSource) -> JsonObject | None:
        """Return the row's job in the cluster. An ended job of an earlier row of ours is deleted; other objects with
        the name are not touched."""
        there = self.get(source)
        if there is None or is_job_of(there, source):
            return there
        ours = JOB_UID_LABEL in (there["metadata"].get("labels") or {})
        if not source.kind.outcome(there).finished or not ours:
            raise ClusterError(HTTPStatus.CONFLICT, "AlreadyExists", "another job with this name is in the cluster")
        self.client.delete(source.kind.resource, source.namespace, source.name, uid=there["metadata"]["uid"])
        return None

    def apply(self, source: JobSource, manifest: JsonObject) -> None:
        """Create or change an object of kueueweb's, and its namespace if the cluster lacks it."""
        kind, namespace = source.kind.resource, manifest["metadata"]["namespace"]
        try:
            self.client.apply(kind, manifest)
        except ClusterError as error:
            if not error.not_found:
                raise
            if source.kind.optional and not self.client.served([kind]):
                what = f"the cluster does not serve {kind.api_version} {kind.kind}"
                remedy = "install its operator; the job then starts automatically"
                raise ClusterError(error.status, "NotServed", f"{what}: {remedy}") from error
            if not make_namespace(self._cluster, self.client, namespace):
                raise
            self.client.apply(kind, manifest)

    def change(
        self, kind: JobKind, there: JsonObject, patch_of: Callable[[JsonObject], JsonObject | None]
    ) -> JsonObject:
        """Return the object with that patch applied; a patch of None changes nothing. Its operator may write its status
        at any time: then the object is read again, and the patch is built again."""
        for attempt in range(1, _MAX_ATTEMPTS + 1):
            change = patch_of(there)
            if change is None:
                break
            try:
                return patch(self.client, kind, there, change)
            except ClusterError as error:
                found = newer(self.client, kind, there) if error.conflict else None
                if found is None or attempt == _MAX_ATTEMPTS:
                    raise
                there = found
        return there


def is_job_of(there: JsonObject, source: JobSource) -> bool:
    """Return whether an object in the cluster is the job of that row, rather than another one of the same name."""
    metadata = there["metadata"]
    return source.uid in (metadata.get("uid"), (metadata.get("labels") or {}).get(JOB_UID_LABEL))
