"""Slurm's fair shares and priorities: recorded scenarios through `scheduling.policies`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from scheduling.model.cohort import PriorityWeights
from scheduling.model.vocabulary import Unscaled
from scheduling.policies.fair_tree import Association, Standing, fair_tree
from scheduling.policies.multifactor import ClusterSize, Job, multifactor_priority

_FLAGS: Final = {
    "NO_NORMAL_ASSOC": Unscaled.ASSOCIATION,
    "NO_NORMAL_PART": Unscaled.PARTITION,
    "NO_NORMAL_QOS": Unscaled.QOS,
    "NO_NORMAL_TRES": Unscaled.RESOURCES,
}


def fair_tree_of(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """Return the level of each association, and the factor of each user."""
    found = fair_tree(
        Association(
            str(each["id"]),
            None if each["parent"] is None else str(each["parent"]),
            each["kind"] == "user",
            None if each["shares"] == "parent" else each["shares"],
            each["ownUsage"],
        )
        for each in scenario["associations"]
    )
    return {key: _standing(standing) for key, standing in found.items()}


def _standing(standing: Standing) -> dict[str, Any]:
    level = "inf" if math.isinf(standing.level) else standing.level
    return {"levelFS": level} | ({} if standing.factor is None else {"fairshare": standing.factor})


def priority_of(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """Return the priority of the job, and its weighted parts."""
    config, cluster, job = scenario["config"], scenario["cluster"], scenario["job"]
    flags = config["PriorityFlags"]
    weights = PriorityWeights(
        age=config["PriorityWeightAge"],
        association=config["PriorityWeightAssoc"],
        fair_share=config["PriorityWeightFairshare"],
        job_size=config["PriorityWeightJobSize"],
        partition=config["PriorityWeightPartition"],
        qos=config["PriorityWeightQOS"],
        resources=config["PriorityWeightTRES"],
        max_age_seconds=config["PriorityMaxAge_s"],
        favor_small=config["PriorityFavorSmall"],
        relative_to_time="SMALL_RELATIVE_TO_TIME" in flags,
        unscaled=frozenset(_FLAGS[flag] for flag in flags if flag in _FLAGS),
    )
    size = ClusterSize(
        cluster["nodes"],
        cluster["cpus"],
        cluster["partitionTres"],
        cluster["maxPartitionPriorityJobFactor"],
        cluster["maxQosPriority"],
        cluster["maxAssocPriority"],
    )
    found = multifactor_priority(
        weights,
        size,
        Job(
            job["waited_s"],
            job["fairshareFactor"],
            job["minNodes"],
            job["cpus"],
            job["timeLimitMinutes"],
            job["partitionPriorityJobFactor"],
            job["qosPriority"],
            job["assocPriority"],
            job["tres"],
            job["nice"],
            job["site"],
        ),
    )
    return {
        "priority": found.priority,
        "age": found.age,
        "assoc": found.association,
        "fairshare": found.fair_share,
        "jobSize": found.job_size,
        "partition": found.partition,
        "qos": found.qos,
        "tres": sum(found.resources.values()),
    }
