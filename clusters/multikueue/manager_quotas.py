"""Quotas of a manager that are the sums of its workers' (`quotaManagement: Automated` of a MultiKueueConfig).

Kueue's rules (its gate MultiKueueManagerQuotaAutomation): a ClusterQueue with a check of MultiKueue, one flavor and no
limit of its own gets, for each resource that it covers, the sum of the nominal quotas of all flavors of the workers'
ClusterQueues that its LocalQueues lead to there. A worker that is not connected counts nothing. The condition
MultiKueueManagerQuotaAutomation of the ClusterQueue says whether it is so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from django.db import transaction

from accounts.kinds.feature_gates import MANAGER_QUOTA_AUTOMATION, is_on
from accounts.models import Cluster
from accounts.services.apply_result import Submitted
from accounts.transactions import unnoticed_transaction
from clusters.multikueue.manager_rows import config_names
from clusters.multikueue.worker_queues import UNSUPPORTED, Finding, WorkerQueues, judge
from queues.kinds import KINDS
from queues.kinds.multikueue import QUOTA_AUTOMATION, QuotaManagement
from queues.kinds.quotas import QuotaSpec, ResourceGroupSpec
from queues.models import ClusterQueue, LocalQueue, MultiKueueConfig
from queues.services.configuration import apply_objects, lock_configuration, objects
from scheduling.manifest import ValidationReport
from scheduling.model.quantity import format_amount, parse_amount
from scheduling.model.times import rfc3339

_UNKNOWN: Final = Finding(False, "", "")
"""Nothing can be said yet."""


def is_wanted(manager: Cluster) -> bool:
    """Whether any quotas are to be automated, so that the workers' queues are needed."""
    automated = MultiKueueConfig.objects.filter(cluster=manager, quota_management=QuotaManagement.AUTOMATED)
    return is_on(manager.configuration, MANAGER_QUOTA_AUTOMATION) and automated.exists()


def automate_quotas(manager: Cluster, workers: Mapping[str, WorkerQueues | None], now: datetime) -> bool:
    """Bring the quotas and conditions of the manager's ClusterQueues up to date; returns whether a quota changed.

    * workers: by the name of a MultiKueueCluster, the queues of those that are connected; None where a connected one
      has not been heard yet. Queues whose workers include such a one stay as they are.
    """
    checks = config_names(manager)
    on = is_on(manager.configuration, MANAGER_QUOTA_AUTOMATION)
    configs = {config.name: config for config in MultiKueueConfig.objects.filter(cluster=manager)} if checks else {}
    changed = False
    for row in ClusterQueue.objects.filter(cluster=manager, deletion_requested_at=None).exclude(
        admission_checks=[], conditions=[]
    ):
        check = next((each["name"] for each in row.admission_checks if each["name"] in checks), "")
        finding = _finding(row, checks.get(check), configs, workers, on=on) if check else None
        if finding is _UNKNOWN:
            continue
        if finding is not None and finding.quotas is not None and _store(row, finding.quotas, check, now):
            changed = True
        _note(row, finding, now)
    return changed


def _finding(
    row: ClusterQueue,
    name: str | None,
    configs: Mapping[str, MultiKueueConfig],
    workers: Mapping[str, WorkerQueues | None],
    *,
    on: bool,
) -> Finding | None:
    config = configs.get(name or "")
    automated = config is not None and config.quota_management == QuotaManagement.AUTOMATED
    if not on:
        rule = f"quotaManagement of MultiKueueConfig {name} is Automated, but the feature gate is off: the quotas stay"
        return Finding(False, "FeatureGateOff", rule) if automated else None
    if config is None:
        return Finding(False, UNSUPPORTED, "The referenced MultiKueueConfig was not found.")
    if not automated:
        return Finding(False, "NotRequested", "MultiKueue manager quota automation has not been requested.")
    if row.node_quotas:
        rule = "Quotas that follow the nodes can't be those of the workers: remove nodeQuotas, or the automation"
        return Finding(False, UNSUPPORTED, rule)
    connected = {worker: workers[worker] for worker in config.clusters if worker in workers}
    known = {worker: queues for worker, queues in connected.items() if queues is not None}
    if len(known) < len(connected):
        return _UNKNOWN
    local = LocalQueue.objects.filter(cluster=row.cluster, cluster_queue_name=row.name)
    keys = {f"{namespace}/{queue}" for namespace, queue in local.values_list("namespace", "name")}
    return judge(_groups_of(row), keys, known)


def _groups_of(row: ClusterQueue) -> tuple[ResourceGroupSpec, ...]:
    groups: tuple[ResourceGroupSpec, ...] = KINDS["ClusterQueue"].spec_of(row).values["resource_groups"]
    return groups


def _store(row: ClusterQueue, quotas: Mapping[str, str], check: str, now: datetime) -> bool:
    """Write the quotas, in place of the ones that are there with their limits, as an edit by the check's controller."""
    kind = KINDS["ClusterQueue"]
    with transaction.atomic():
        lock_configuration(row.cluster)
        found = objects(row.cluster, kind).filter(pk=row.pk, generation=row.generation, deletion_requested_at=None)
        current = found.first()
        if current is None:
            return False  # it was edited meanwhile: the next pass looks at it again
        spec = kind.spec_of(current)
        (group,) = spec.values["resource_groups"]
        (flavor,) = group.flavors
        cells = tuple(_cell(flavor, resource, text) for resource, text in quotas.items())
        if cells == group.quotas:
            return False  # however the amounts are spelt
        values: dict[str, Any] = {**spec.values, "resource_groups": (replace(group, quotas=cells),)}
        wanted = Submitted(replace(spec, values=values), ValidationReport(), current.api_version)
        apply_objects(row.cluster, kind, [wanted], actor=check, now=now)
    return True


def _cell(flavor: str, resource: str, text: str) -> QuotaSpec:
    amount = parse_amount(resource, text)
    spellings = {} if text == format_amount(resource, amount) else {"nominalQuota": text}
    return QuotaSpec(flavor, resource, amount, spellings=spellings)


def _note(row: ClusterQueue, finding: Finding | None, now: datetime) -> None:
    """Keep the condition, or take it away where nothing is to be said."""
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
