"""KAI's queues: recorded fair shares through `scheduling.policies`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from scheduling.policies.fair_share import QueueClaim, allocatable, dominant_share, fair_shares

_RESOURCES: Final = ("cpu", "memory", "gpu")


def fair_share_of(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fair share of each queue, level by level: children divide their parent's share."""
    below: dict[str | None, list[Mapping[str, Any]]] = {}
    for queue in scenario["queues"]:
        below.setdefault(queue.get("parent"), []).append(queue)
    found: dict[str, dict[str, Any]] = {queue["name"]: {} for queue in scenario["queues"]}
    for resource in _RESOURCES:
        _divide(resource, scenario["total"].get(resource, 0), below, None, scenario["kValue"], found)
    for queue in scenario["queues"]:
        shares = found[queue["name"]]
        uses = [
            (
                queue["resources"][name]["allocated"],
                allocatable(_claim(queue, name), shares[name], scenario["total"][name]),
            )
            for name in _RESOURCES
        ]
        shares["dominantShare"] = dominant_share(uses)
    return {"fairShare": found}


def _divide(
    resource: str,
    total: float,
    below: Mapping[str | None, list[Mapping[str, Any]]],
    parent: str | None,
    usage_factor: float,
    found: dict[str, dict[str, Any]],
) -> None:
    claims = [_claim(queue, resource) for queue in below.get(parent, ())]
    for name, share in fair_shares(total, claims, usage_factor).items():
        found[name][resource] = share
        _divide(resource, share, below, name, usage_factor, found)


def _claim(queue: Mapping[str, Any], resource: str) -> QueueClaim:
    stated = queue["resources"][resource]
    return QueueClaim(
        queue["name"],
        queue["priority"],
        -queue["age_s"],
        _bound(stated["quota"]),
        _bound(stated["limit"]),
        stated["overQuotaWeight"],
        stated["request"],
        stated.get("usage", 0.0),
    )


def _bound(amount: float) -> float:
    return math.inf if amount == -1 else amount
