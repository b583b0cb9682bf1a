"""Cohort, and the quota of Cohorts and ClusterQueues."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ResourceQuota:
    """One cell (flavor, resource) of quota in base units; None is unlimited."""

    nominal: int
    borrowing_limit: int | None = None
    lending_limit: int | None = None


@dataclass(frozen=True, slots=True)
class FlavorQuotas:
    """A flavor of a resource group with its quota per covered resource. A missing resource is never refused."""

    name: str
    resources: Mapping[str, ResourceQuota] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ResourceGroup:
    """Resources that get the same flavor. The flavors are tried in this order."""

    covered_resources: tuple[str, ...]
    flavors: tuple[FlavorQuotas, ...]


@dataclass(frozen=True, slots=True)
class PreemptionProtection:
    """Protection from preemption, an extension of ours that is off by default: a workload may be preempted only
    after it ran for `minimum_run_seconds`, and not again within `cool_down_seconds` of its last preemption."""

    minimum_run_seconds: float = 0.0
    cool_down_seconds: float = 0.0


NO_PROTECTION = PreemptionProtection()


@dataclass(frozen=True, slots=True)
class Cohort:
    """Kueue's Cohort. ClusterQueues and Cohorts below it share unused quota. Limits apply only if it has a parent."""

    name: str
    parent_name: str = ""
    resource_groups: tuple[ResourceGroup, ...] = ()
    fair_weight: float = 1.0
    protection: PreemptionProtection = NO_PROTECTION
