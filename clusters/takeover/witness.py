"""Jobs that hold quota and pods that run, before and after: whether the switch left them as they were."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from clusters.api_objects import PODS, JsonObject
from clusters.client import ClusterClient
from clusters.jobs.registry import JOB_KINDS


class Witness:
    """Reads the named jobs and the running pods when it is created. Raises ClusterError."""

    def __init__(self, client: ClusterClient, jobs: Collection[str]) -> None:
        self._client = client
        self._before = {name: _version(item) for name, item in self._objects() if name in jobs or _runs(item)}

    def changed(self) -> list[str]:
        """Return a line for each job and pod that any client has deleted or changed since."""
        now = {name: _version(item) for name, item in self._objects() if name in self._before}
        others = {name: before for name, before in self._before.items() if now.get(name) != before}
        return [_difference(name, before, now.get(name)) for name, before in others.items()]

    def _objects(self) -> Iterator[tuple[str, JsonObject]]:
        jobs = {kind.resource for kind in JOB_KINDS.values()} - {PODS}
        for kind in (*sorted(self._client.served(jobs), key=str), PODS):
            for item in self._client.list(kind).items:
                yield f"{kind.kind} {item['metadata']['namespace']}/{item['metadata']['name']}", item


def _runs(item: JsonObject) -> bool:
    return (item.get("status") or {}).get("phase") == "Running"


def _version(item: JsonObject) -> tuple[str, int]:
    return item["metadata"]["uid"], item["metadata"].get("generation", 0)


def _difference(name: str, before: tuple[str, int], now: tuple[str, int] | None) -> str:
    if now is None:
        return f"{name}: it was deleted"
    if now[0] != before[0]:
        return f"{name}: it was replaced by an object with uid {now[0]}"
    return f"{name}: its generation is {now[1]} in place of {before[1]}"
