"""Cohort, and the quota of Cohorts and ClusterQueues."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from scheduling.model.vocabulary import SharingPolicy, Unscaled


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
    """Protection from preemption, an extension of kueueweb that is off by default: a workload may be preempted only
    after it ran for `minimum_run_seconds`, and not again within `cool_down_seconds` of its last preemption.
    """

    minimum_run_seconds: float = 0.0
    cool_down_seconds: float = 0.0


NO_PROTECTION = PreemptionProtection()
DEFAULT_MAX_AGE_SECONDS = 7 * 24 * 3600.0
DEFAULT_HALF_LIFE_SECONDS = 7 * 24 * 3600
"""Slurm's PriorityDecayHalfLife."""
DEFAULT_USAGE_WEIGHTS: Mapping[str, float] = {"cpu": 1.0}
"""Cores alone, as in Slurm without TRESBillingWeights."""


@dataclass(frozen=True, slots=True)
class PriorityWeights:
    """The weight of each factor between 0 and 1. `favor_small`: the smaller the job, the larger its size factor;
    `relative_to_time`: its size is what it requests per minute of its time limit.

    The fair share follows past use: `half_life_seconds` after it, use counts half; `usage` are the weights of the
    resources in it, per core, GiB or other unit (Slurm's TRESBillingWeights).
    """

    age: float = 0.0
    association: float = 0.0
    fair_share: float = 0.0
    job_size: float = 0.0
    partition: float = 0.0
    qos: float = 0.0
    resources: Mapping[str, float] = field(default_factory=dict)
    max_age_seconds: float = DEFAULT_MAX_AGE_SECONDS
    favor_small: bool = False
    relative_to_time: bool = False
    unscaled: frozenset[Unscaled] = frozenset()
    half_life_seconds: int = DEFAULT_HALF_LIFE_SECONDS
    usage: Mapping[str, float] = field(default_factory=lambda: DEFAULT_USAGE_WEIGHTS)


ANYONE: Final = "*"
"""The name of the limit of each user, or of all groups together, without a limit by name."""


@dataclass(frozen=True, slots=True)
class UserLimit:
    """A limit of some users and groups on a queue, as in YuniKorn.

    `workloads` is the number of workloads that may hold quota at the same time, 0 for any number (YuniKorn's
    maxapplications). `resources` is the amount that they may hold of each resource, in any unit that all amounts share;
    a resource without an amount is not limited.
    """

    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    workloads: int = 0
    resources: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Cohort:
    """Kueue's Cohort. ClusterQueues and Cohorts below it share unused quota. Limits apply only if it has a parent.

    Our own, and off by default: `priority_weights` order pending workloads in the queues below, `sharing_policy`
    divides the cohort's quota among the queues below by another rule than Kueue's, `user_limits` limit what each user
    holds in the queues below."""

    name: str
    parent_name: str = ""
    resource_groups: tuple[ResourceGroup, ...] = ()
    fair_weight: float = 1.0
    protection: PreemptionProtection = NO_PROTECTION
    priority_weights: PriorityWeights | None = None
    sharing_policy: SharingPolicy | None = None
    user_limits: tuple[UserLimit, ...] = ()
