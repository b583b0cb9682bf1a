"""The part of Kueue's Configuration that says which kinds of jobs are managed, and where (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from clusters.jobs.framework.context import IntegrationSettings, JobContext
from clusters.jobs.framework.job_kind import JobKind
from clusters.jobs.framework.store import Objects
from clusters.jobs.registry import KINDS
from scheduling.model.selectors import LabelSelector

_NAMELESS_GROUPS: Final = ("", "apps")
"""Groups that Kueue leaves out of the names of its frameworks."""


def framework_name(kind: JobKind) -> str:
    """How `integrations.frameworks` names a kind: `batch/job`, `pod`, `ray.io/raycluster`."""
    name = kind.kind.lower()
    return name if kind.group in _NAMELESS_GROUPS else f"{kind.group}/{name}"


def enabled_kinds(configuration: Mapping[str, Any]) -> frozenset[tuple[str, str]]:
    """(apiVersion, kind) of the kinds that are switched on. Without a list all of them are."""
    frameworks = (configuration.get("integrations") or {}).get("frameworks")
    return frozenset(key for key, kind in KINDS.items() if not frameworks or framework_name(kind) in frameworks)


def integration_settings(configuration: Mapping[str, Any]) -> IntegrationSettings:
    """The settings of a cluster's Configuration."""
    selector = configuration.get("managedJobsNamespaceSelector")
    return IntegrationSettings(
        manage_jobs_without_queue_name=configuration.get("manageJobsWithoutQueueName") is True,
        managed_jobs_namespace_selector=None if selector is None else LabelSelector.from_manifest(selector),
    )


def job_context(configuration: Mapping[str, Any], objects: Objects) -> JobContext:
    """What the rules look up in a cluster with this Configuration."""
    return JobContext(integration_settings(configuration), objects, KINDS, enabled=enabled_kinds(configuration))
