"""The condition Active of admission checks that kueueweb answers itself: checks that request nodes from an autoscaler.

Other controllers report this condition for their own checks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from accounts.models import Cluster
from accounts.services.object_status import Status, timestamp
from clusters.push.provisioning import CONFIG_KIND
from clusters.served.kueue_kinds import GROUP
from queues.models import AdmissionCheck, ProvisioningRequestConfig
from scheduling.state.second_pass import PROVISIONING

_BAD: Final = "bad parameters reference"


def admission_check_statuses(cluster: Cluster, rows: Sequence[AdmissionCheck]) -> list[Status]:
    """Return the statuses of checks; empty for checks of other controllers."""
    configs = set(ProvisioningRequestConfig.objects.filter(cluster=cluster).values_list("name", flat=True))
    return [_status(row, configs) if row.controller_name == PROVISIONING else {} for row in rows]


def _status(row: AdmissionCheck, configs: set[str]) -> Status:
    problem = _problem(row, configs)
    active = {
        "type": "Active",
        "status": "False" if problem else "True",
        "reason": "BadParametersRef" if problem else "Active",
        "message": problem or "The admission check is active",
        "lastTransitionTime": timestamp(row.updated_at),
        "observedGeneration": row.generation,
    }
    return {"conditions": [active]}


def _problem(row: AdmissionCheck, configs: set[str]) -> str:
    """Return why its parameters name no configuration."""
    found = row.parameters
    if not found:
        return "missing parameters reference"
    group, kind, name = (found.get(key) or "" for key in ("apiGroup", "kind", "name"))
    if not name:
        return f"empty name: {_BAD}"
    if group != GROUP:
        return f'wrong group "{group}", expecting "{GROUP}": {_BAD}'
    if kind != CONFIG_KIND:
        return f'wrong kind "{kind}", expecting "{CONFIG_KIND}": {_BAD}'
    return "" if name in configs else f'{CONFIG_KIND}.{GROUP} "{name}" not found'
