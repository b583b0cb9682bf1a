"""YuniKorn's queues: recorded states before scheduling, through `scheduling.policies.headroom`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from scheduling.model.cohort import UserLimit
from scheduling.model.quantity import NANOS, parse_quantity
from scheduling.policies.headroom import (
    Path,
    QueueLevel,
    group_of,
    queue_headroom,
    user_headroom,
    user_may_start,
)
from scheduling.policies.resource_vector import total_of

_SHOWN_NANOS: Final = {"vcore": 10**6, "memory": 2**30 * NANOS}
"""The unit of a recorded amount: thousandths of a core, GiB, and whole units otherwise."""


def headroom_of(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """Return the headroom of each leaf and of each application's user, before the first wave is scheduled.

    Raises ValueError for a scenario with a later wave: it depends on what was allocated before.
    """
    applications = scenario["applications"]
    if any(application["wave"] for application in applications):
        raise ValueError("only the first wave is answered: later ones depend on allocations")
    total = total_of(node["resource"] for node in scenario["nodes"])
    paths = {_name(path): path for top in scenario["queues"] for path in _leaves(top, (), total)}
    refused = [each["id"] for each in applications if each["queue"] not in paths]
    users = {each["id"]: _user(paths[each["queue"]], each) for each in applications if each["id"] not in refused}
    headroom = {name: queue_headroom(path) for name, path in paths.items()}
    return {"waves": [{"headroomBefore": headroom, "userBefore": users, "rejected": refused}]}


def _user(path: Path, application: Mapping[str, Any]) -> dict[str, Any]:
    user, groups = application["user"], [application["group"]]
    can_run = user_may_start(path, user, group_of(path, groups))
    return {"headroom": user_headroom(path, user, groups), "canRun": can_run}


def _leaves(queue: Mapping[str, Any], above: Path, total: Mapping[str, float]) -> Iterator[Path]:
    """Yield the paths of the leaves below a queue, each with its leaf first."""
    maximum = total if not above else _amounts((queue.get("Resources") or {}).get("Max"))
    limits = tuple(_limit(limit) for limit in queue.get("Limits") or ())
    level = QueueLevel(queue["Name"], maximum, limits=limits)
    path = [level, *above]
    children = queue.get("Queues") or ()
    if not children and not queue.get("Parent"):
        yield path
    for child in children:
        yield from _leaves(child, path, total)


def _limit(limit: Mapping[str, Any]) -> UserLimit:
    return UserLimit(
        tuple(limit.get("Users") or ()),
        tuple(limit.get("Groups") or ()),
        limit.get("MaxApplications", 0),
        _amounts(limit.get("MaxResources")),
    )


def _amounts(texts: Mapping[str, Any] | None) -> dict[str, float]:
    return {name: parse_quantity(text) / _SHOWN_NANOS.get(name, NANOS) for name, text in (texts or {}).items()}


def _name(path: Path) -> str:
    return ".".join(level.name for level in reversed(path))
