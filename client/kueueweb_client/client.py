"""The two clients: the same calls, waits and watches, blocking and asynchronous."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self, TypeVar, cast

import httpx

from kueueweb_client import calls
from kueueweb_client.calls import Call, answer
from kueueweb_client.errors import ApiError, ClientError, Unreachable
from kueueweb_client.retries import pause_after_answer, pause_after_cut
from kueueweb_client.types import ApplyResult, Event, Key, Object, Workload, WorkloadDetail
from kueueweb_client.waiting import PAUSE_SECONDS, Goal, ObjectWatch, Wait, Watch

T = TypeVar("T")

_NOT_FOUND: Final = 404
_SILENCE_SECONDS: Final = 45.0
"""A stream of events that has been silent for this long is dead: the server sends a line at least every 15 seconds."""


def _headers(token: str) -> dict[str, str]:
    return {"Authorization": f"Token {token}"} if token else {}


def _moment(call: Call[Any], at: str) -> dict[str, str]:
    """Return the parameter of a read of the past. Raises `ClientError` for a call that has none."""
    if call.method != "GET" or call.is_wire:
        raise ClientError("at: Forbidden: manifests show only the current state. Earlier states are shown as tables.")
    return {"at": at}


def _patience(usual: httpx.Timeout, silent_seconds: float) -> httpx.Timeout:
    """Return the usual time-outs, with this many seconds for the server to answer."""
    read = None if usual.read is None else usual.read + silent_seconds
    return httpx.Timeout(connect=usual.connect, read=read, write=usual.write, pool=usual.pool)


class _Pages:
    """The filters of the next page of a list."""

    def __init__(self, *names: str, **filters: Any) -> None:
        self._names = names
        self._filters = filters
        self.more = True

    def call(self) -> Call[Any]:
        return calls.page(*self._names, **self._filters)

    def take(self, page: Mapping[str, Any]) -> list[Any]:
        self._filters["after"] = page["next"]
        self.more = page["next"] is not None
        return cast("list[Any]", page["results"])


class Client:
    """A blocking client. `url` is the server's address, `token` one of its API tokens, `cluster` the cluster's name.

    Each call raises `ApiError` when the server refuses it, and `Unreachable` when there is no answer.
    """

    def __init__(
        self,
        url: str,
        token: str = "",
        *,
        cluster: str = "default",
        timeout_seconds: float = 30,
        verify: bool | str = True,
        at: str = "",
    ) -> None:
        self.url = url
        self.cluster = cluster
        self._at = at
        self._http = httpx.Client(base_url=url, headers=_headers(token), timeout=timeout_seconds, verify=verify)

    @property
    def is_past(self) -> bool:
        """Whether it reads an earlier state."""
        return bool(self._at)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def send(self, call: Call[T]) -> T:
        """Send a call of `kueueweb_client.calls`, and repeat it where that does no harm (`kueueweb_client.retries`)."""
        arguments = {**call.arguments(self.cluster), "timeout": _patience(self._http.timeout, call.silent_seconds)}
        if self._at:
            arguments["params"] |= _moment(call, self._at)
        attempt = 0
        while True:
            try:
                response = self._http.request(**arguments)
            except httpx.HTTPError as error:
                pause = pause_after_cut(call, attempt, error)
                if pause is None:
                    raise Unreachable(f"{self._http.base_url} does not answer: {error}") from error
            else:
                pause = pause_after_answer(call, attempt, response)
                if pause is None:
                    return answer(call, response)
            attempt += 1
            time.sleep(pause)

    def rows(self, *names: str, **filters: Any) -> Iterator[Any]:
        """Yield every row of a list (`workloads`, `cluster-queues`, `nodes` ...), page by page."""
        for page in self.pages(*names, **filters):
            yield from page

    def pages(self, *names: str, **filters: Any) -> Iterator[list[Any]]:
        """Yield the pages of a list as they are read; `limit` is the size of a page."""
        pages = _Pages(*names, **filters)
        while pages.more:
            yield pages.take(self.send(pages.call()))

    def object_pages(self, address: str, plural: str, **selection: Any) -> Iterator[Object]:
        """Yield the pages of a list in Kubernetes' wire format as they are read; `limit` is the size of a page.
        `address` is as in apis/kueue.x-k8s.io/v1beta2; the selection has namespace, labelSelector and fieldSelector."""
        following = ""
        while True:
            asked: dict[str, Any] = {**selection, "continue": following or None}
            page = self.send(calls.objects(address, plural, **asked))
            yield page
            following = page["metadata"].get("continue", "")
            if not following:
                return

    def watch_objects(self, address: str, plural: str, version: str, **selection: Any) -> Iterator[tuple[str, Object]]:
        """Yield the changes of a list in Kubernetes' wire format since a version of it: ADDED, MODIFIED or DELETED, and
        the object. Raises `ApiError` with status 410 if the version is too old: list again."""
        watch = ObjectWatch(address, plural, version, selection)
        while True:
            try:
                for line in self._lines(watch.call(), _SILENCE_SECONDS):
                    if event := watch.take(line):
                        yield event
            except ClientError as error:
                time.sleep(watch.pause(error))

    def workloads(self, **filters: Any) -> Iterator[Workload]:
        """Yield workloads; the filters are the server's: namespace, status, cluster_queue, search ..."""
        return self.rows("workloads", **filters)

    def workload(self, namespace: str, name: str) -> WorkloadDetail:
        """Read one workload with all fields."""
        return self.send(calls.workload(namespace, name))

    def events(self, namespace: str, name: str) -> Iterator[Event]:
        """Yield the events of a workload."""
        return self.rows("workloads", namespace, name, "events")

    def pods(self, namespace: str, name: str) -> Iterator[Object]:
        """Read the pods of a workload: phase, node, reason, restarts, devices."""
        return self.rows("workloads", namespace, name, "pods")

    def log(self, namespace: str, workload: str, pod: str, **options: Any) -> list[str]:
        """Read the lines that a pod has printed. Options: container, tail, since, timestamps, previous."""
        return self.send(calls.log(namespace, workload, pod, **options)).splitlines()

    def follow_log(
        self, namespace: str, workload: str, pod: str, *, since: str = "", timestamps: bool = False, **options: Any
    ) -> Iterator[str]:
        """Yield the past and future lines of a pod's log, until it ends; a lost connection is opened again."""
        last = ""
        while True:
            asked = {**options, "since": last or since, "follow": True, "timestamps": True}
            try:
                for line in self._lines(calls.log(namespace, workload, pod, **asked)):
                    moment, _, text = line.partition(" ")
                    if moment > last:
                        last = moment
                        yield line if timestamps else text
            except Unreachable:
                if not last:
                    raise
            options["tail"] = None
            if not self._may_print(namespace, workload, pod):
                return
            time.sleep(PAUSE_SECONDS)

    def _lines(self, call: Call[str], silence_seconds: float | None = None) -> Iterator[str]:
        """Yield the lines of an answer as they arrive; fails after so much silence."""
        if self._at:
            raise ClientError("at: Forbidden: an earlier state does not change, so it cannot be watched or followed.")
        patience = httpx.Timeout(self._http.timeout.connect, read=silence_seconds)
        try:
            with self._http.stream(**call.arguments(self.cluster), timeout=patience) as response:
                if not response.is_success:
                    response.read()
                    answer(call, response)
                yield from response.iter_lines()
        except httpx.HTTPError as error:
            raise Unreachable(f"{self._http.base_url} does not answer: {error}") from error

    def _may_print(self, namespace: str, workload: str, pod: str) -> bool:
        """Return whether a pod has not ended yet."""
        try:
            found = [row for row in self.pods(namespace, workload) if row["name"] == pod]
        except ApiError as error:
            if error.status == _NOT_FOUND:
                return False
            raise
        return any(row["phase"] not in ("Succeeded", "Failed") for row in found)

    def read(self, noun: str, *names: str, **parameters: str) -> Object:
        """Return one object."""
        return self.send(calls.read(noun, *names, **parameters))

    def apply(self, manifests: str, **options: Any) -> ApplyResult:
        """Apply manifests, all or none."""
        return self.send(calls.apply(manifests, **options))

    def submit(self, *workloads: Mapping[str, Any], idempotency_key: str = "") -> Sequence[Key]:
        """Submit workloads without a job, all or none."""
        return self.send(calls.submit(workloads, idempotency_key=idempotency_key))

    def cancel(self, *keys: Key) -> Sequence[Key]:
        """End workloads for good; return the workloads that changed."""
        return self.send(calls.act("cancel", keys))

    def hold(self, *keys: Key) -> Sequence[Key]:
        """Evict workloads and keep them from being admitted; return the workloads that changed."""
        return self.send(calls.act("hold", keys))

    def release(self, *keys: Key) -> Sequence[Key]:
        """Let held workloads be admitted again; return the workloads that changed."""
        return self.send(calls.act("release", keys))

    def requeue(self, *keys: Key) -> Sequence[Key]:
        """Stop workloads that hold quota, and queue them again; return the workloads that changed."""
        return self.send(calls.act("requeue", keys))

    def watch(self, namespace: str, name: str) -> Iterator[WorkloadDetail]:
        """Yield the workload now and after each change, until it is deleted. A lost connection is opened again; the log
        reports it."""
        watch = Watch(namespace, name)
        while not watch.has_ended:
            try:
                for line in self._lines(watch.call(), _SILENCE_SECONDS):
                    if state := watch.take(line):
                        yield state
            except ClientError as error:
                time.sleep(watch.pause(error))

    def wait(
        self, namespace: str, name: str, *, until: Goal = "finished", timeout_seconds: float = 600
    ) -> WorkloadDetail | None:
        """Wait until the workload is admitted, finished or deleted (None). Raises `Timeout` and `Failed`. The server
        answers when something has changed. A lost connection is opened again; the log reports it."""
        wait = Wait(namespace, name, until, timeout_seconds)
        while True:
            try:
                if wait.is_over(self.send(wait.call())):
                    return wait.found
            except (ApiError, Unreachable) as error:
                pause = wait.pause(error)
                if pause is None:
                    return None
                time.sleep(pause)


class AsyncClient:
    """The same as `Client`, for asyncio."""

    def __init__(
        self,
        url: str,
        token: str = "",
        *,
        cluster: str = "default",
        timeout_seconds: float = 30,
        verify: bool | str = True,
    ) -> None:
        self.cluster = cluster
        self._http = httpx.AsyncClient(base_url=url, headers=_headers(token), timeout=timeout_seconds, verify=verify)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def send(self, call: Call[T]) -> T:
        """Send a call of `kueueweb_client.calls`, and repeat it where that does no harm (`kueueweb_client.retries`)."""
        arguments = {**call.arguments(self.cluster), "timeout": _patience(self._http.timeout, call.silent_seconds)}
        attempt = 0
        while True:
            try:
                response = await self._http.request(**arguments)
            except httpx.HTTPError as error:
                pause = pause_after_cut(call, attempt, error)
                if pause is None:
                    raise Unreachable(f"{self._http.base_url} does not answer: {error}") from error
            else:
                pause = pause_after_answer(call, attempt, response)
                if pause is None:
                    return answer(call, response)
            attempt += 1
            await asyncio.sleep(pause)

    async def rows(self, *names: str, **filters: Any) -> AsyncIterator[Any]:
        """Yield every row of a list, page by page."""
        pages = _Pages(*names, **filters)
        while pages.more:
            for row in pages.take(await self.send(pages.call())):
                yield row

    async def workload(self, namespace: str, name: str) -> WorkloadDetail:
        """Read one workload with all fields."""
        return await self.send(calls.workload(namespace, name))

    async def apply(self, manifests: str, **options: Any) -> ApplyResult:
        """Apply manifests, all or none."""
        return await self.send(calls.apply(manifests, **options))

    async def submit(self, *workloads: Mapping[str, Any], idempotency_key: str = "") -> Sequence[Key]:
        """Submit workloads without a job, all or none."""
        return await self.send(calls.submit(workloads, idempotency_key=idempotency_key))

    async def watch(self, namespace: str, name: str) -> AsyncIterator[WorkloadDetail]:
        """Yield the workload now and after each change, until it is deleted."""
        watch = Watch(namespace, name)
        while not watch.has_ended:
            try:
                async for line in self._lines(watch.call(), _SILENCE_SECONDS):
                    if state := watch.take(line):
                        yield state
            except ClientError as error:
                await asyncio.sleep(watch.pause(error))

    async def wait(
        self, namespace: str, name: str, *, until: Goal = "finished", timeout_seconds: float = 600
    ) -> WorkloadDetail | None:
        """Wait until the workload is admitted, finished or deleted (None). Raises `Timeout` and `Failed`."""
        wait = Wait(namespace, name, until, timeout_seconds)
        while True:
            try:
                if wait.is_over(await self.send(wait.call())):
                    return wait.found
            except (ApiError, Unreachable) as error:
                pause = wait.pause(error)
                if pause is None:
                    return None
                await asyncio.sleep(pause)

    async def _lines(self, call: Call[str], silence_seconds: float) -> AsyncIterator[str]:
        """Yield the lines of an answer as they arrive; fails after so much silence."""
        patience = httpx.Timeout(self._http.timeout.connect, read=silence_seconds)
        try:
            async with self._http.stream(**call.arguments(self.cluster), timeout=patience) as response:
                if not response.is_success:
                    await response.aread()
                    answer(call, response)
                async for line in response.aiter_lines():
                    yield line
        except httpx.HTTPError as error:
            raise Unreachable(f"{self._http.base_url} does not answer: {error}") from error
