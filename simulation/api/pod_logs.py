"""The output of containers: the start of their command, their progress, and their end. Nothing is stored.

The lines follow from the pod and the time alone, so that asking twice answers the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from scheduling.model.times import parse_rfc3339
from simulation.api.errors import bad_request, not_found
from simulation.api.objects import JsonObject, annotations_of, name_of, uid_of
from simulation.environment import RUN_SECONDS, Environment

_STEPS: Final = 50
_BEAT_SECONDS: Final = 15.0
_MAX_LINES: Final = 5_000


@dataclass(frozen=True, slots=True)
class LogRequest:
    """A valid request GET pods/NAME/log. `since` is in seconds since the epoch."""

    namespace: str
    name: str
    container: str
    follow: bool
    tail: int | None
    since: float
    timestamps: bool
    limit_bytes: int | None


@dataclass(frozen=True, slots=True)
class Line:
    """A line and its moment, in seconds since the epoch."""

    at: float
    text: str

    def encoded(self, *, timestamp: bool) -> bytes:
        """Encode the line as the log endpoint sends it."""
        moment = datetime.fromtimestamp(self.at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z")
        return f"{moment} {self.text}\n".encode() if timestamp else f"{self.text}\n".encode()


def chosen_container(pod: JsonObject, asked: str) -> str:
    """Return the container of the request. Raises ApiError (400) as Kubernetes does, also for one that has not
    started."""
    names = [str(container["name"]) for container in pod["spec"]["containers"]]
    if not asked and len(names) > 1:
        choice = " ".join(names)
        raise bad_request(f"a container name must be specified for pod {name_of(pod)}, choose one of: [{choice}]")
    name = asked or names[0]
    if name not in names:
        raise bad_request(f"container {name} is not valid for pod {name_of(pod)}")
    if not _started(pod, name):
        raise bad_request(f'container "{name}" in pod "{name_of(pod)}" is waiting to start: ContainerCreating')
    return name


class PodLogs:
    """The logs of the pods of a cluster."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def recent(self, request: LogRequest) -> tuple[list[Line], bool]:
        """Return the lines so far, the requested ones, and whether more may follow. Raises ApiError."""
        pod = self._environment.store.get("pods", request.namespace, request.name)
        if pod is None:
            raise not_found("pods", request.name)
        name = chosen_container(pod, request.container)
        lines = [line for line in self._lines(pod, name) if line.at >= request.since]
        running = "running" in _state(pod, name)
        return lines if request.tail is None else lines[max(0, len(lines) - request.tail) :], running

    def _lines(self, pod: JsonObject, container: str) -> list[Line]:
        state = _state(pod, container)
        ended = state.get("terminated")
        began = parse_rfc3339((ended or state["running"])["startedAt"])
        # Kubernetes keeps whole seconds, so read the lines of the last second again.
        until = parse_rfc3339(ended["finishedAt"]) + 1.0 if ended else self._environment.now()
        lines = list(self._printed(pod, container, began, until))[:_MAX_LINES]
        if ended:
            code = ended["exitCode"]
            last = "finished" if code == 0 else f"failed: {ended.get('message') or ended.get('reason')}"
            lines.append(Line(until, f"{last}, exit code {code}"))
        return lines

    def _printed(self, pod: JsonObject, container: str, began: float, until: float) -> Iterator[Line]:
        spec = next(each for each in pod["spec"]["containers"] if each["name"] == container)
        command = " ".join([*map(str, spec.get("command") or ()), *map(str, spec.get("args") or ())])
        yield Line(began, f"starting {command or spec.get('image', '')} on {pod['spec'].get('nodeName', '')}")
        seconds = _run_seconds(pod)
        pause = self._environment.scaled(seconds / _STEPS if seconds else _BEAT_SECONDS)
        for step in range(1, _MAX_LINES):
            at = began + step * pause
            if at > until or (seconds and step >= _STEPS):
                return
            yield Line(at, self._progress(pod, step, bounded=bool(seconds)))

    def _progress(self, pod: JsonObject, step: int, *, bounded: bool) -> str:
        noise = self._environment.draw("log", uid_of(pod), str(step))
        if not bounded:
            return f"served {1 + int(noise * 400)} requests, p50 {3 + noise * 9:.1f} ms"
        return f"step {step}/{_STEPS} loss {2.5 / (1 + step / 8) + noise * 0.1:.4f}"


def _run_seconds(pod: JsonObject) -> float:
    """Return how long its containers intend to run; 0 if unknown."""
    try:
        return max(0.0, float(annotations_of(pod).get(RUN_SECONDS, "0")))
    except ValueError:
        return 0.0


def _state(pod: JsonObject, container: str) -> JsonObject:
    entries = pod["status"].get("containerStatuses") or ()
    return next((entry.get("state") or {} for entry in entries if entry["name"] == container), {})


def _started(pod: JsonObject, container: str) -> bool:
    state = _state(pod, container)
    return "running" in state or "startedAt" in (state.get("terminated") or {})
