"""Scheduling gates of pods and of templates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clusters.jobs.framework.manifest import JsonObject, dig, mapping_at


def has_gate(pod: Mapping[str, Any], name: str) -> bool:
    return any(gate.get("name") == name for gate in dig(pod, "spec", "schedulingGates") or ())


def add_gate(pod: JsonObject, name: str) -> None:
    if not has_gate(pod, name):
        spec = mapping_at(pod, "spec")
        spec["schedulingGates"] = [*(spec.get("schedulingGates") or ()), {"name": name}]


def remove_gates(pod: JsonObject, *names: str) -> bool:
    """Remove scheduling gates; return whether the pod had any of them."""
    gates = dig(pod, "spec", "schedulingGates") or []
    kept = [gate for gate in gates if gate.get("name") not in names]
    if len(kept) == len(gates):
        return False
    pod["spec"]["schedulingGates"] = kept
    return True
