"""Slurm's multifactor priority: a weighted sum of factors between 0 and 1.

    P = age*W + association*W + fair share*W + job size*W + partition*W + QOS*W + each resource*W + site - nice

P is a whole number of at least 1. The factors are those of Slurm's plugin priority/multifactor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduling.model.cohort import PriorityWeights
from scheduling.model.vocabulary import Unscaled

MAX_PRIORITY = 2**32 - 1


@dataclass(frozen=True, slots=True)
class ClusterSize:
    """The totals that the factors are fractions of. `resources` are the totals that the resource weights refer to."""

    nodes: float = 0
    cpus: float = 0
    resources: Mapping[str, float] = field(default_factory=dict)
    highest_partition: float = 0
    highest_qos: float = 0
    highest_association: float = 0


@dataclass(frozen=True, slots=True)
class Job:
    """The facts about a job that determine its priority. `time_limit_minutes` None: no limit."""

    waited_seconds: float
    fair_share: float
    nodes: float
    cpus: float
    time_limit_minutes: float | None = None
    partition: float = 0
    qos: float = 0
    association: float = 0
    resources: Mapping[str, float] = field(default_factory=dict)
    nice: float = 0
    site: float = 0


@dataclass(frozen=True, slots=True)
class PriorityFactors:
    """A priority and its weighted parts, which add up to it, as Slurm's `sprio` lists them."""

    priority: int
    age: float
    association: float
    fair_share: float
    job_size: float
    partition: float
    qos: float
    resources: Mapping[str, float]
    site: float
    nice: float


def multifactor_priority(weights: PriorityWeights, size: ClusterSize, job: Job) -> PriorityFactors:
    """Return the priority of a job. Factors without a weight count 0."""
    raw = weights.unscaled
    resources = {
        name: weight * _part(job.resources.get(name, 0), size.resources.get(name, 0), raw=Unscaled.RESOURCES in raw)
        for name, weight in weights.resources.items()
    }
    parts = (
        weights.age * _age(weights, job) if weights.age else 0.0,
        weights.association * _part(job.association, size.highest_association, raw=Unscaled.ASSOCIATION in raw),
        weights.fair_share * job.fair_share,
        weights.job_size * _job_size(weights, size, job) if weights.job_size else 0.0,
        weights.partition * _part(job.partition, size.highest_partition, raw=Unscaled.PARTITION in raw),
        weights.qos * _part(job.qos, size.highest_qos, raw=Unscaled.QOS in raw),
    )
    total = sum(parts) + sum(resources.values()) + job.site - job.nice
    return PriorityFactors(max(1, min(int(total), MAX_PRIORITY)), *parts, resources, job.site, job.nice)


def _age(weights: PriorityWeights, job: Job) -> float:
    return min(1.0, max(0.0, job.waited_seconds) / weights.max_age_seconds)


def _part(own: float, highest: float, *, raw: bool) -> float:
    if raw:
        return own
    return own / highest if highest > 0 else 0.0


def _job_size(weights: PriorityWeights, size: ClusterSize, job: Job) -> float:
    """Return how large the job is: of the nodes and cpus of the cluster, or of its cpus per minute of its time
    limit."""
    if weights.relative_to_time:
        spread = job.nodes * size.cpus / size.nodes if size.nodes else 0.0
        cpus = max(job.cpus, spread)
        minutes = max(1.0, job.time_limit_minutes) if job.time_limit_minutes is not None else None
        found = cpus / minutes / size.cpus if minutes is not None and size.cpus else 0.0
    else:
        found = sum(own / of for own, of in ((job.nodes, size.nodes), (job.cpus, size.cpus)) if of)
        found /= max(1, bool(size.nodes) + bool(size.cpus))
    return min(1.0, max(0.0, 1.0 - found if weights.favor_small else found))
