"""The part of Kueue's Configuration that determines which kinds of jobs are managed, and where (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from accounts.kinds.feature_gates import DEFAULT_PRIORITY_CLASS, is_on
from accounts.kinds.frameworks import external_kinds, is_enabled
from accounts.kinds.metrics_settings import copied_keys
from clusters.jobs.framework.context import IntegrationSettings, JobContext
from clusters.jobs.framework.store import Objects
from clusters.jobs.registry import KINDS
from scheduling.model.selectors import LabelSelector


def job_context(configuration: Mapping[str, Any], objects: Objects, now: str = "") -> JobContext:
    """Return the context of the rules in a cluster with this Configuration; `now` is the time for written
    timestamps.
    """
    selector = configuration.get("managedJobsNamespaceSelector")
    settings = IntegrationSettings(
        manage_jobs_without_queue_name=configuration.get("manageJobsWithoutQueueName") is True,
        managed_jobs_namespace_selector=None if selector is None else LabelSelector.from_manifest(selector),
        label_keys_to_copy=tuple(sorted(copied_keys(configuration).labels)),
        defaults_priority_class=is_on(configuration, DEFAULT_PRIORITY_CLASS),
    )
    enabled = frozenset(key for key in KINDS if is_enabled(configuration, *key))
    return JobContext(settings, objects, KINDS, now, enabled=enabled, external=external_kinds(configuration))
