"""The doors that Kubernetes does not have: what goes wrong on purpose, and the virtual clock."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

import orjson

from simulation.api.api_server import Answer, Request
from simulation.api.errors import REFUSALS, ApiError, bad_request, method_not_allowed
from simulation.clock import VirtualClock
from simulation.cluster import SimulatedCluster
from simulation.environment import Options

CHAOS_PATH = "/_chaos"
CLOCK_PATH = "/_clock"
_MAX_ADVANCE_SECONDS = 366 * 86400


class Control:
    """GET and POST on /_chaos and /_clock.

    POST /_chaos takes any of {"watch": {delay_seconds, repeat_rate, drop_rate, disconnect_rate}, "options": {fail_rate,
    time_scale, ...}, "nodes": {NAME: "not-ready" | "unreachable" | "ready" | "cordoned" | "uncordoned" | "gone"},
    "devices": {UUID: healthy}, "compact": true, "refusal": 429 (what every request is answered until it is 0)}.
    POST /_clock takes {"advance": seconds} and needs a virtual clock.
    """

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster

    def answer(self, request: Request) -> Answer | None:
        """Return the answer; None if the path is not one of these."""
        if request.path not in (CHAOS_PATH, CLOCK_PATH):
            return None
        try:
            if request.method == "POST":
                self._change(request.path, _body(request))
            elif request.method != "GET":
                raise method_not_allowed(request.method, request.path)
        except ApiError as error:
            return Answer(error.code, error.status())
        return Answer(200, self._chaos() if request.path == CHAOS_PATH else {"now": self._cluster.clock.now()})

    def _chaos(self) -> dict[str, Any]:
        return {"watch": asdict(self._cluster.chaos), "options": asdict(self._cluster.environment.options)}

    def _change(self, path: str, body: dict[str, Any]) -> None:
        if path == CLOCK_PATH:
            self._advance(body)
            return
        unknown = set(body) - {"watch", "options", "nodes", "devices", "compact", "refusal"}
        if unknown:
            raise bad_request(f"unknown keys: {', '.join(sorted(unknown))}")
        self._cluster.chaos.change(_mapping(body, "watch"))
        self._set_options(_mapping(body, "options"))
        for name, state in _mapping(body, "nodes").items():
            self._cluster.set_node_state(name, str(state))
        for uuid, healthy in _mapping(body, "devices").items():
            self._cluster.set_device_health(uuid, healthy is True)
        if body.get("compact") is True:
            self._cluster.store.compact()
        self._refuse(body.get("refusal", self._cluster.refusal))
        self._cluster.settle()

    def _refuse(self, code: Any) -> None:
        if code not in (0, *REFUSALS):
            raise bad_request(f"refusal must be 0 or one of {', '.join(map(str, REFUSALS))}, not {code!r}")
        self._cluster.refusal = code

    def _set_options(self, values: dict[str, Any]) -> None:
        known = {field.name for field in fields(Options)}
        for name, value in values.items():
            if name not in known:
                raise bad_request(f"unknown option {name!r}; there are {', '.join(sorted(known))}")
            if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
                raise bad_request(f"{name} must be a number that is not negative, not {value!r}")
            if name == "time_scale" and value == 0:
                raise bad_request("time_scale must be greater than 0")
        for name, value in values.items():
            setattr(self._cluster.environment.options, name, float(value))

    def _advance(self, body: dict[str, Any]) -> None:
        seconds = body.get("advance")
        if (
            isinstance(seconds, bool)
            or not isinstance(seconds, (int, float))
            or not 0 <= seconds <= _MAX_ADVANCE_SECONDS
        ):
            raise bad_request(f"advance must be seconds between 0 and {_MAX_ADVANCE_SECONDS}, not {seconds!r}")
        if not isinstance(self._cluster.clock, VirtualClock):
            raise bad_request("the clock is the machine's; start the cluster with --virtual-clock to advance it")
        self._cluster.advance(float(seconds))


def _body(request: Request) -> dict[str, Any]:
    try:
        body = orjson.loads(request.body)
    except orjson.JSONDecodeError as error:
        raise bad_request(f"the body is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise bad_request("{name} is not a chaos option; use {', '.join(sorted(known))}")
    return body


def _mapping(body: dict[str, Any], key: str) -> dict[str, Any]:
    value = body.get(key) or {}
    if not isinstance(value, dict):
        raise bad_request(f"{key} must be an object")
    return value
