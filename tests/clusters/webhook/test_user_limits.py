"""Limits by user for jobs of kubectl, whose user the API server names, beside workloads of REST."""

from __future__ import annotations

import pytest

from queues.models import ClusterQueue, Workload
from tests.clusters.system import gpu_job
from tests.clusters.webhook.conftest import GuardedSystem

pytestmark = pytest.mark.django_db(transaction=True)

NOTE = "kueueweb.io/submitted-by"
USER = "kubectl"
"""The account by which the simulated cluster knows who is not us."""


def states() -> dict[str, str]:
    rows = Workload.objects.select_related("job").order_by("name")
    return {row.job.name: row.reason or row.status for row in rows if row.job is not None}


def test_a_job_of_kubectl_counts_for_the_user_whom_the_api_server_names(guarded: GuardedSystem) -> None:
    ClusterQueue.objects.update(user_limits=[{"users": [USER], "workloads": 1}])
    for name in ("first", "second"):
        made = gpu_job(name)
        made["metadata"]["annotations"] = {NOTE: "alice"}
        guarded.kubectl.create(made)
    guarded.watcher.resync()
    for _ in range(4):
        guarded.turn()
    found = states()
    assert sorted(found.values()) == ["Admitted", "WaitingForUserLimit"], found
    ClusterQueue.objects.update(user_limits=[])
    for _ in range(4):
        guarded.turn()
    assert set(states().values()) == {"Admitted"}
