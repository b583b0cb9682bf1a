"""The inputs of the rules for jobs, besides the job: settings, the known kinds, and the cluster's objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from clusters.jobs.framework.errors import JobError
from clusters.jobs.framework.manifest import JsonObject, labels_of
from clusters.jobs.framework.store import Objects
from scheduling.model.selectors import LabelSelector

if TYPE_CHECKING:
    from clusters.jobs.framework.job_kind import JobKind

MULTIKUEUE_CONTROLLER: Final = "kueue.x-k8s.io/multikueue"


@dataclass(frozen=True, slots=True)
class IntegrationSettings:
    """The part of Kueue's Configuration that determines the managed jobs.

    `managed_jobs_namespace_selector` None selects every namespace.
    """

    manage_jobs_without_queue_name: bool = False
    managed_jobs_namespace_selector: LabelSelector | None = None
    wait_for_pods_ready: bool = False
    label_keys_to_copy: tuple[str, ...] = ()
    defaults_priority_class: bool = True


@dataclass(frozen=True, slots=True)
class JobContext:
    """`kinds` are those with an integration, by (apiVersion, kind); `now` is the time for written timestamps."""

    settings: IntegrationSettings
    objects: Objects
    kinds: Mapping[tuple[str, str], JobKind]
    now: str = ""
    enabled: frozenset[tuple[str, str]] = field(default_factory=frozenset)
    """The kinds that are switched on; empty: all of them."""
    external: frozenset[tuple[str, str]] = frozenset()
    """Kinds whose jobs other controllers manage (externalFrameworks)."""

    def namespace_is_managed(self, namespace: str) -> bool:
        """Return whether jobs of the namespace may be managed. Raises JobError if the namespace does not exist."""
        selector = self.settings.managed_jobs_namespace_selector
        if selector is None:
            return True
        found = self.objects.get("Namespace", "", namespace)
        if found is None:
            raise JobError(f'failed to get namespace: namespaces "{namespace}" not found')
        return selector.matches(labels_of(found))

    def is_enabled(self, reference: Mapping[str, str]) -> bool:
        """Return whether an owner reference names a kind with an enabled integration, of kueueweb or of another
        program."""
        kind = (reference.get("apiVersion", ""), reference.get("kind", ""))
        return kind in self.external or (kind in self.kinds and (not self.enabled or kind in self.enabled))

    def name_of_kind(self, reference: Mapping[str, str]) -> str:
        """Return the name under which an owner reference is looked up among externally managed kinds:
        Kind.version.group."""
        api_version, kind = reference.get("apiVersion", ""), reference.get("kind", "")
        if (api_version, kind) not in self.external:
            return kind
        group, _, version = api_version.rpartition("/")
        return f"{kind}.{version}.{group}"

    def has_default_queue(self, namespace: str) -> bool:
        return self.objects.get("LocalQueue", namespace, "default") is not None

    def cluster_queue_of(self, namespace: str, local_queue: str) -> JsonObject | None:
        """Return the ClusterQueue behind a LocalQueue."""
        queue = self.objects.get("LocalQueue", namespace, local_queue)
        return self.objects.get("ClusterQueue", "", queue["spec"]["clusterQueue"]) if queue is not None else None
