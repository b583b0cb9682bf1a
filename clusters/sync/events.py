"""Kubernetes' events of Workload objects, in a cluster that another scheduler runs -> our rows."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime

from accounts.models import Cluster
from clusters.api_objects import JsonObject
from clusters.client import Listing, WatchEvent
from clusters.sync.present import present, uid_of
from queues.services.mirror.mirrored_events import MirroredEvent, store_events

_log = logging.getLogger(__name__)


class EventSync:
    """Adds the cluster's events of workloads. They expire there after an hour; here they are kept."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def apply(self, items: Sequence[Listing | WatchEvent], now: float) -> None:
        """Applies lists and changes, in the order in which they came."""
        found = (_read(event, now) for event in present(items, uid_of).objects.values())
        store_events(self._cluster, [event for event in found if event is not None])


def _read(event: JsonObject, now: float) -> MirroredEvent | None:
    about = event.get("involvedObject") or {}
    last = (event.get("series") or {}).get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime")
    try:
        uid = uuid.UUID(about.get("uid") or "")
        at = datetime.fromisoformat(last) if last else datetime.fromtimestamp(now, UTC)
    except ValueError:
        _log.warning("Event %s is of no workload, or of no time", event["metadata"]["name"])
        return None
    return MirroredEvent(
        uid,
        about.get("namespace") or event["metadata"]["namespace"],
        about.get("name") or "",
        at,
        event.get("type") or "Normal",
        (event.get("reason") or "")[:96],
        event.get("message") or "",
        (event.get("reportingComponent") or (event.get("source") or {}).get("component") or "")[:150],
    )
