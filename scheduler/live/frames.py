"""Pure functions on frames: apply and merge deltas, and redact them for an audience.

`data` has the parts totals, cluster_queues, cohorts and devices. A delta has the parts that changed, whole entries
by name, `removed`: {part: [name, ...]}, and the names of the `workloads` that changed.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, Final

import orjson

from queues.services.visibility import Visibility
from scheduler.live.shapes import LiveWorkloads

Data = dict[str, Any]

PARTS: Final = ("cluster_queues", "cohorts", "devices")
_TYPES: Final = ("snapshot", "delta", "heartbeat")
MAX_NAMED: Final = 100
"""Maximum number of workloads that one delta names. If more changed, readers should read their lists again."""
_COUNTS: Final = ("pending", "inadmissible", "reserving", "admitted")


@dataclass(frozen=True, slots=True)
class Audience:
    """Sockets with equal rights: the namespaces whose tenants may be named (None: all), and the visible queues."""

    namespaces: frozenset[str] | None
    visibility: Visibility

    @property
    def sees_everything(self) -> bool:
        """Whether frames are sent unchanged."""
        return self.namespaces is None


def read(payload: str | bytes) -> Data:
    """Read a published frame. Raises ValueError with the reason if it is not a frame of this version's
    `scheduler.live.publisher`."""
    frame = orjson.loads(payload)
    if not isinstance(frame, dict) or frame.get("type") not in _TYPES:
        raise ValueError("not a frame")
    for name in ("epoch", "sequence"):
        if type(frame.get(name)) is not int:
            raise ValueError(f"its {name} is {frame.get(name)!r}, not an integer")
    moment(frame.get("time"))
    data = frame.get("data", {})
    if not isinstance(data, dict) or not all(isinstance(part, dict) for part in data.values()):
        raise ValueError("a part of its data is not an object")
    if frame["type"] != "heartbeat" and "data" not in frame:
        raise ValueError("it has no data")
    return frame


def moment(text: object) -> datetime:
    """Return the time of a frame. Raises ValueError unless it is an ISO 8601 time with an offset."""
    if not isinstance(text, str):
        raise ValueError(f"its time is {text!r}, not a string")
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError(f"its time {text!r} has no offset")
    return at


def empty() -> Data:
    """Return the figures of a cluster without any data."""
    return {"totals": {}, **{part: {} for part in PARTS}}


def apply(data: Data, delta: Mapping[str, Any]) -> None:
    """Apply a delta to `data`."""
    if "totals" in delta:
        data["totals"] = delta["totals"]
    for part in PARTS:
        data[part].update(delta.get(part, {}))
        for name in delta.get("removed", {}).get(part, ()):
            data[part].pop(name, None)


def moves(data: Mapping[str, Any], delta: Mapping[str, Any]) -> bool:
    """Return whether the delta removes an entry, or moves a queue or cohort in the tree, so that other cohorts may
    become visible."""
    if "removed" in delta:
        return True
    return any(
        name not in data[part] or data[part][name][above] != entry[above]
        for part, above in (("cluster_queues", "cohort"), ("cohorts", "parent"))
        for name, entry in delta.get(part, {}).items()
    )


def named(keys: Iterable[str], more: bool = False) -> LiveWorkloads:
    """Return the first of these workloads without repetitions, and whether there are `more`."""
    first = list(islice(dict.fromkeys(keys), MAX_NAMED + 1))
    if more or len(first) > MAX_NAMED:
        return {"changed": first[:MAX_NAMED], "more": True}
    return {"changed": first}


def merge(deltas: Iterable[Mapping[str, Any]]) -> Data:
    """Return one delta with the effect of all of them in order: the latest entry of each name."""
    merged: Data = {}
    removed: dict[str, dict[str, None]] = {part: {} for part in PARTS}
    workloads: dict[str, None] = {}
    more = False
    for delta in deltas:
        changed = delta.get("workloads", {})
        workloads |= dict.fromkeys(changed.get("changed", ()))
        more = more or changed.get("more", False)
        if "totals" in delta:
            merged["totals"] = delta["totals"]
        for part in PARTS:
            for name, entry in delta.get(part, {}).items():
                merged.setdefault(part, {})[name] = entry
                removed[part].pop(name, None)
            for name in delta.get("removed", {}).get(part, ()):
                merged.get(part, {}).pop(name, None)
                removed[part][name] = None
    if any(removed.values()):
        merged["removed"] = {part: list(names) for part, names in removed.items()}
    if workloads or more:
        merged["workloads"] = named(workloads, more)
    return merged


def redact(delta: Mapping[str, Any], whole: Mapping[str, Any], audience: Audience) -> Data:
    """Return the part of a delta or snapshot that the audience may see. `whole` is all data, used for sums and
    ancestors.

    Hidden are queues outside the audience's rights, cohorts that contain only such queues, and workloads of other
    namespaces. A foreign tenant's slice is shown as occupied, without its holder. Totals count visible queues. Deltas
    that change the quota tree or remove something are only for audiences that see everything; all others get a snapshot
    instead (`moves`).
    """
    if audience.namespaces is None:
        return dict(delta)
    visible: dict[str, Collection[str] | None] = {
        "cluster_queues": audience.visibility.cluster_queues,
        "cohorts": audience.visibility.cohorts(whole["cluster_queues"], whole["cohorts"]),
        "devices": None,
    }
    shown: Data = {}
    for part in PARTS:
        if part in delta:
            names = visible[part]
            shown[part] = {name: entry for name, entry in delta[part].items() if names is None or name in names}
    if "devices" in shown:
        shown["devices"] = {name: _occupied(device, audience.namespaces) for name, device in shown["devices"].items()}
    if "totals" in delta or "cluster_queues" in delta:
        shown["totals"] = _totals(whole, audience.visibility)
    if changed := delta.get("workloads"):
        own = [key for key in changed["changed"] if key.partition("/")[0] in audience.namespaces]
        more = changed.get("more", False)
        if own or more:
            shown["workloads"] = named(own, more)
    return shown


def _occupied(device: Mapping[str, Any], namespaces: Collection[str]) -> Data:
    return {**device, "slices": [_slice(piece, namespaces) for piece in device["slices"]]}


def _slice(piece: Mapping[str, Any], namespaces: Collection[str]) -> Mapping[str, Any]:
    if piece["namespace"] in namespaces:
        return piece
    return {**piece, "workload": None, "namespace": None, "pod_set": "", "replica": 0, "container": ""}


def _totals(whole: Mapping[str, Any], visibility: Visibility) -> Data:
    queues = [queue for name, queue in whole["cluster_queues"].items() if visibility.sees_queue(name)]
    return {**whole["totals"], **{count: sum(queue[count] for queue in queues) for count in _COUNTS}}
