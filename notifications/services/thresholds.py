"""States of queues and devices that cross the threshold of a rule, by the figures that the leader publishes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from itertools import islice
from typing import Any, Final, NamedTuple

from django.db.models import Max
from django.db.models.functions import Coalesce

from foundation.time_series import Resolution
from gpus.models import DeviceSample
from notifications.models import Event
from notifications.services.occurrences import MAX_AT_ONCE, Look, Occurrence
from queues.models import Workload
from queues.services.visibility import visibility_of
from scheduler.live.published import read_published

DEFAULT_PERCENT: Final[Mapping[Event, int]] = {
    Event.DEVICES_IDLE: 10,
    Event.QUOTA_USED: 90,
    Event.SHARE_BELOW: 50,
}
_FRESH: Final = timedelta(minutes=10)
"""A device without a later sample is not measured: nothing is said about its use."""


class _Fullness(NamedTuple):
    """The used percentage of an amount, with the flavor and resource of that amount."""

    percent: int
    flavor: str
    resource: str


def crossed_thresholds(look: Look) -> Sequence[Occurrence] | None:
    """Return the states that have been beyond the rule's threshold for its minutes; None if the figures are unknown,
    because no scheduler leads."""
    published = read_published(look.cluster)
    if published is None:
        return None
    event = Event(look.rule.event)
    if event is Event.DEVICES_IDLE:
        return tuple(islice(_idle(look, published.data), MAX_AT_ONCE))
    find = _full if event is Event.QUOTA_USED else _below
    return _lasting(look, tuple(islice(find(look, published.data), MAX_AT_ONCE)))


def _lasting(look: Look, occurrences: Sequence[Occurrence]) -> Sequence[Occurrence]:
    """Return the states that have lasted for the minutes of the rule, and store when each began."""
    stored, now = look.rule.onsets, look.now.isoformat()
    onsets = {each.key: stored.get(each.key, now) for each in occurrences}
    if onsets != stored:
        look.rule.onsets = onsets
        type(look.rule).objects.filter(pk=look.rule.pk).update(onsets=onsets)
    return [each for each in occurrences if datetime.fromisoformat(onsets[each.key]) <= look.cutoff]


def _full(look: Look, data: Mapping[str, Any]) -> Iterator[Occurrence]:
    for name, numbers in _queues(look, data):
        fullest = max(_fullness(numbers, "nominal"), default=None)
        if fullest is not None and fullest.percent >= look.threshold:
            title = f"The queue {name} uses {fullest.percent}% of its quota of {fullest.resource}"
            yield Occurrence(name, title, f"Flavor {fullest.flavor}. {_waiting(numbers)}", f"/queues/{name}")


def _below(look: Look, data: Mapping[str, Any]) -> Iterator[Occurrence]:
    for name, numbers in _queues(look, data):
        fullest = max(_fullness(numbers, "deserved"), default=None)
        waits = numbers["pending"] + numbers["inadmissible"]
        if waits and fullest is not None and fullest.percent < look.threshold:
            title = f"The queue {name} has {fullest.percent}% of its share while workloads wait"
            message = f"Its largest use is of {fullest.resource} in flavor {fullest.flavor}. {_waiting(numbers)}"
            yield Occurrence(name, title, message, f"/queues/{name}")


def _queues(look: Look, data: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    visibility = visibility_of(look.access, look.cluster)
    for name, numbers in sorted(data["cluster_queues"].items()):
        if look.rule.cluster_queue in ("", name) and visibility.sees_queue(name):
            yield name, numbers


def _fullness(numbers: Mapping[str, Any], of: str) -> Iterator[_Fullness]:
    """Yield the used percentage of each amount of a queue: of the quota that it deserves by its cohort's policy if
    `of` is "deserved" and there is such a policy, else of its nominal quota."""
    for row in numbers["usage"]:
        amount = row["nominal"] if row.get(of) is None else row[of]
        if amount > 0:
            yield _Fullness(row["used"] * 100 // amount, row["flavor"], row["resource"])


def _waiting(numbers: Mapping[str, Any]) -> str:
    return f"{numbers['pending'] + numbers['inadmissible']} workloads wait in the queue."


def _idle(look: Look, data: Mapping[str, Any]) -> Iterator[Occurrence]:
    """Yield devices that hardly worked since the cutoff, each with a holder of at least that age that the user may
    see."""
    held = _holders(look, data)
    for uuid, peak in _peaks(look, held).items():
        device = data["devices"][uuid]
        if peak < look.threshold:
            holders = ", ".join(held[uuid])
            title = f"GPU {device['index']} of {device['node']} is held and idle"
            message = f"At most {peak:.0f}% busy in the last {look.minutes} min. Held by {holders}."
            # The names of all holders may be longer than a key.
            yield Occurrence(
                f"{uuid} {sha256(holders.encode()).hexdigest()}", title, message, f"/nodes/{device['node']}"
            )


def _holders(look: Look, data: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return by device the workloads on it, if all have run since the cutoff and the user may see one of them."""
    admitted = Workload.objects.filter(cluster=look.cluster, admitted_at__lte=look.cutoff, finished_at=None)
    old = {f"{namespace}/{name}" for namespace, name in admitted.values_list("namespace", "name")}
    namespaces = look.access.visible_namespaces()
    found: dict[str, list[str]] = {}
    for uuid, device in data["devices"].items():
        names = {each["workload"] or "" for each in device["slices"]}
        seen = [name for name in names if namespaces is None or name.partition("/")[0] in namespaces]
        if seen and old.issuperset(names):
            found[uuid] = sorted(seen)
    return found


def _peaks(look: Look, held: Mapping[str, Any]) -> dict[str, float]:
    """Return the highest utilization in percent since the cutoff of the devices that are still measured."""
    samples = (
        DeviceSample.objects.filter(
            device__uuid__in=list(held),
            device__node__cluster=look.cluster,
            resolution__in=[Resolution.RAW, Resolution.MINUTES],
            at__gt=look.cutoff,
        )
        .exclude(utilization_percent=None)
        .values_list("device__uuid")
        .annotate(peak=Max(Coalesce("utilization_percent_peak", "utilization_percent")), last=Max("at"))
    )
    return {uuid: peak for uuid, peak, last in samples.order_by("device__uuid") if last > look.now - _FRESH}
