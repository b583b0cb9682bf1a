"""Quotas of a manager that are the sums of its workers' (`quotaManagement: Automated` of a MultiKueueConfig).

Kueue's rules (its gate MultiKueueManagerQuotaAutomation): a ClusterQueue with a check of MultiKueue, one flavor and no
limit of its own gets, for each resource that it covers, the sum of the nominal quotas of all flavors of the workers'
ClusterQueues that its LocalQueues lead to there. A disconnected worker counts as zero. The ClusterQueue's condition
MultiKueueManagerQuotaAutomation reports whether this applies.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from django.db import transaction

from accounts.kinds.feature_gates import MANAGER_QUOTA_AUTOMATION, is_on
from accounts.models import Cluster
from accounts.services.apply_result import Submitted
from clusters.multikueue.manager_rows import config_names
from clusters.multikueue.worker_queues import UNSUPPORTED, Finding, WorkerQueues, judge
from foundation.transactions import unnoticed_transaction
from queues.kinds import KINDS
from queues.kinds.multikueue import QUOTA_AUTOMATION, QuotaManagement
from queues.kinds.quotas import QuotaSpec, ResourceGroupSpec
from queues.models import ClusterQueue, LocalQueue, MultiKueueConfig
from queues.services.configuration import apply_objects, lock_configuration, objects
from scheduling.manifest import ValidationReport
from scheduling.model.quantity import format_amount, parse_amount
from scheduling.model.times import rfc3339

_UNKNOWN: Final = Finding(False, "", "")
"""The quotas cannot be determined yet."""


def is_wanted(manager: Cluster) -> bool:
    """Return whether any quotas are automated, so that the workers' queues are needed."""
    automated = MultiKueueConfig.objects.filter(cluster=manager, quota_management=QuotaManagement.AUTOMATED)
    return is_on(manager.configuration, MANAGER_QUOTA_AUTOMATION) and automated.exists()


def automate_quotas(manager: Cluster, workers: Mapping[str, WorkerQueues | None], now: datetime) -> bool:
    """Bring the quotas and conditions of the manager's ClusterQueues up to date; returns whether a quota changed.

    * workers: the queues of each connected worker, by the name of its MultiKueueCluster; None for a connected worker
      that has not reported yet. Queues with such a worker are not changed.
    """
    on = is_on(manager.configuration, MANAGER_QUOTA_AUTOMATION)
    configs = {config.name: config for config in MultiKueueConfig.objects.filter(cluster=manager)}
    concerned = objects(manager, KINDS["ClusterQueue"]).filter(deletion_requested_at=None)
    if on or any(map(_is_automated, configs.values())):
        concerned = concerned.exclude(admission_checks=[], conditions=[])
    else:
        concerned = concerned.exclude(conditions=[])
    rows = list(concerned)
    checks = config_names(manager) if rows else {}
    local = _local_queues(manager, rows) if on else {}
    changed = False
    for row in rows:
        check = next((each["name"] for each in row.admission_checks if each["name"] in checks), "")
        found = _finding(row, checks[check], configs, workers, local.get(row.name, set()), on=on) if check else None
        if found is _UNKNOWN:
            continue
        if found is not None and found.quotas is not None and _store(row, found.quotas, check, now):
            changed = True
        _note(row, found, now)
    return changed


def _is_automated(config: MultiKueueConfig) -> bool:
    return config.quota_management == QuotaManagement.AUTOMATED


def _local_queues(manager: Cluster, rows: Sequence[ClusterQueue]) -> dict[str, set[str]]:
    """Return the LocalQueues of each ClusterQueue, as `namespace/name`."""
    found: dict[str, set[str]] = defaultdict(set)
    queues = LocalQueue.objects.filter(cluster=manager, cluster_queue_name__in=[row.name for row in rows])
    for namespace, name, queue in queues.values_list("namespace", "name", "cluster_queue_name") if rows else ():
        found[queue].add(f"{namespace}/{name}")
    return found


def _finding(
    row: ClusterQueue,
    name: str,
    configs: Mapping[str, MultiKueueConfig],
    workers: Mapping[str, WorkerQueues | None],
    local_queues: Collection[str],
    *,
    on: bool,
) -> Finding | None:
    config = configs.get(name)
    automated = config is not None and _is_automated(config)
    if not on:
        rule = (
            f"quotaManagement of MultiKueueConfig {name} is Automated, but the feature gate is off: the "
            "quotas stay unchanged"
        )
        return Finding(False, "FeatureGateOff", rule) if automated else None
    if config is None:
        return Finding(False, UNSUPPORTED, "The referenced MultiKueueConfig was not found.")
    if not automated:
        return Finding(False, "NotRequested", "MultiKueue manager quota automation has not been requested.")
    if row.node_quotas:
        rule = "Quotas that follow the nodes can't also follow the workers: remove nodeQuotas, or the automation"
        return Finding(False, UNSUPPORTED, rule)
    connected = {worker: workers[worker] for worker in config.clusters if worker in workers}
    known = {worker: queues for worker, queues in connected.items() if queues is not None}
    if len(known) < len(connected):
        return _UNKNOWN
    return judge(_groups_of(row), local_queues, known)


def _groups_of(row: ClusterQueue) -> tuple[ResourceGroupSpec, ...]:
    groups: tuple[ResourceGroupSpec, ...] = KINDS["ClusterQueue"].spec_of(row).values["resource_groups"]
    return groups


def _store(row: ClusterQueue, quotas: Mapping[str, str], check: str, now: datetime) -> bool:
    """Write the quotas in place of the present ones and their limits, as an edit by the check's controller."""
    if _with(_groups_of(row), quotas) == _groups_of(row):
        return False  # the amounts may be spelled differently
    kind = KINDS["ClusterQueue"]
    with transaction.atomic():
        lock_configuration(row.cluster)
        found = objects(row.cluster, kind).filter(pk=row.pk, generation=row.generation, deletion_requested_at=None)
        current = found.first()
        if current is None:
            return False  # it has been edited since: the next pass reads it again
        spec = kind.spec_of(current)
        values: dict[str, Any] = {**spec.values, "resource_groups": _with(spec.values["resource_groups"], quotas)}
        wanted = Submitted(replace(spec, values=values), ValidationReport(), current.api_version)
        apply_objects(row.cluster, kind, [wanted], actor=check, now=now)
    return True


def _with(groups: tuple[ResourceGroupSpec, ...], quotas: Mapping[str, str]) -> tuple[ResourceGroupSpec, ...]:
    """Return the only group, with these quotas of its only flavor."""
    (group,) = groups
    return (replace(group, quotas=tuple(_cell(group.flavors[0], name, text) for name, text in quotas.items())),)


def _cell(flavor: str, resource: str, text: str) -> QuotaSpec:
    amount = parse_amount(resource, text)
    spellings = {} if text == format_amount(resource, amount) else {"nominalQuota": text}
    return QuotaSpec(flavor, resource, amount, spellings=spellings)


def _note(row: ClusterQueue, finding: Finding | None, now: datetime) -> None:
    """Store the finding as the condition, or remove the condition if there is none; write nothing if it is the same."""
    before: Mapping[str, Any] = next((each for each in row.conditions if each["type"] == QUOTA_AUTOMATION), {})
    others = [each for each in row.conditions if each["type"] != QUOTA_AUTOMATION]
    told: dict[str, str] = {}
    if finding is not None:
        told = {"status": str(finding.automated), "reason": finding.reason, "message": finding.message}
    if told == {key: before[key] for key in ("status", "reason", "message") if key in before}:
        return
    if told:
        same = before.get("status") == told["status"]
        since = before["lastTransitionTime"] if same else rfc3339(now)
        others.append({"type": QUOTA_AUTOMATION, **told, "lastTransitionTime": since})
    with unnoticed_transaction():
        ClusterQueue.objects.filter(pk=row.pk).update(conditions=others)
