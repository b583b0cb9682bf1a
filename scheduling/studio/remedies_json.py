"""Remedies as JSON: amounts, workloads by key, and the effects of each; the changed objects themselves are left out."""

from __future__ import annotations

from typing import Any

from scheduling.outlook import Effects
from scheduling.studio.remedies import Remedies
from scheduling.studio.remedy import Remedy


def remedies_json(found: Remedies) -> dict[str, Any]:
    """Return the remedies of one workload, with all names."""
    return {
        "state": found.state.value,
        "starts_now": found.starts_now,
        "complete": found.complete,
        "trials": found.trials,
        "remedies": [_remedy(remedy) for remedy in found.remedies],
    }


def affected_json(effects: Effects) -> dict[str, dict[str, str]]:
    """Return the workloads that gain or lose, by key with their ClusterQueue."""
    return {name: dict(getattr(effects, name)) for name in ("starts", "waits", "preempted", "stopped")}


def _remedy(remedy: Remedy) -> dict[str, Any]:
    return {
        "kind": remedy.kind.value,
        "field": remedy.field_name,
        "subject": remedy.subject,
        "before": dict(remedy.before),
        "after": dict(remedy.after),
        "workloads": list(remedy.workloads),
        "at_least": remedy.at_least,
        "monotone": remedy.monotone,
        "effects": affected_json(remedy.effects),
    }
