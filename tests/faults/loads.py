"""The work that arrives while a fault lasts, and whether what was answered is kept."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import psycopg

from tests.acceptance.crash.rest import Account

NAMESPACE: Final = "ai-research"
MANIFESTS: Final = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: faults}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: probe}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu]
    flavors:
    - {name: faults, resources: [{name: cpu, nominalQuota: 100}]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: probe, namespace: ai-research}
spec: {clusterQueue: probe}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: flood}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu]
    flavors:
    - {name: faults, resources: [{name: cpu, nominalQuota: 300m}]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: flood, namespace: ai-research}
spec: {clusterQueue: flood}
"""
_STORED_SECONDS: Final = 60.0
"""A request waits for a thread for 30 seconds at most, and is stored soon after."""
POD_SETS: Final = [{"count": 1, "requests": {"cpu": "1m"}}]
SIZE: Final = 1000
"""Workloads of a flood; the quota is for 300."""

_USED: Final = """
    SELECT count(*) FROM queues_workload
    WHERE cluster_queue_name = 'flood' AND quota_reserved_at IS NOT NULL AND status <> 'Finished'
"""
_STATES: Final = "SELECT name, status FROM queues_workload WHERE namespace = %s AND queue_name = 'flood'"
_TWICE: Final = """
    SELECT workload_name, count(*) FROM scheduler_decision WHERE workload_name LIKE 'flood-%%' AND action = 'Admit'
    GROUP BY workload_name, workload_uid HAVING count(*) > 1
"""


class Load:
    """One of idle, flood and mass cancel."""

    def __init__(self, name: str, account: Account, cell: int) -> None:
        self.name = name
        self._account = account
        self._names = [f"flood-{cell}-{number}" for number in range(SIZE)]
        self._thread: threading.Thread | None = None
        self._kept = self._cancelled = False

    def prepare(self) -> None:
        """Do what comes before the fault."""
        if self.name == "mass cancel":
            self._submit()

    def start(self) -> None:
        """Do what comes while the fault lasts, without waiting for it."""
        work = {"flood": self._submit, "mass cancel": self._cancel}.get(self.name)
        if work is not None:
            self._thread = threading.Thread(target=work)
            self._thread.start()

    def join(self) -> None:
        if self._thread is not None:
            self._thread.join()

    def _submit(self) -> None:
        rows = [
            {"namespace": NAMESPACE, "name": name, "local_queue": "flood", "pod_sets": POD_SETS} for name in self._names
        ]
        self._kept = self._account.call("POST", "workloads/", rows).acknowledged

    def _cancel(self) -> None:
        self._cancelled = self._account.call("POST", "workloads/cancel/", {"workloads": self._keys()}).acknowledged

    def _keys(self) -> list[dict[str, Any]]:
        return [{"namespace": NAMESPACE, "name": name} for name in self._names]

    def faults(self, database: str) -> Iterator[str]:
        """List acknowledged workloads that are lost, quota that was given twice, and workloads admitted twice."""
        with psycopg.connect(database, autocommit=True) as session:
            states: dict[str, str] = dict(session.execute(_STATES, [NAMESPACE]).fetchall())
            used = session.execute(_USED).fetchone()
            twice = session.execute(_TWICE).fetchall()
        mine = Counter(states.get(name, "missing") for name in self._names)
        if self._kept and mine["missing"]:
            yield f"{mine['missing']} of {SIZE} workloads are missing whose submission was answered"
        if self._cancelled and mine["Finished"] + mine["missing"] < SIZE:
            yield f"after a cancellation that was answered: {dict(mine)}"
        if used is None or used[0] > 300:
            yield f"{used} workloads hold quota for 300"
        yield from (f"{name} was admitted {count} times" for name, count in twice)

    def end(self, database: str) -> None:
        """Leave nothing for the next cell. A submission that was not answered may still be stored, after a first
        cancellation: it is cancelled until it is there and has ended, or the server has given it up."""
        deadline = time.monotonic() + (0.0 if self._kept else _STORED_SECONDS)
        while self.name != "idle":
            self._account.patiently("POST", "workloads/cancel/", {"workloads": self._keys()}, seconds=300.0)
            if self._has_ended(database, deadline):
                return
            time.sleep(1.0)

    def _has_ended(self, database: str, deadline: float) -> bool:
        with psycopg.connect(database, autocommit=True) as session:
            states: dict[str, str] = dict(session.execute(_STATES, [NAMESPACE]).fetchall())
        mine = [states[name] for name in self._names if name in states]
        return all(state == "Finished" for state in mine) and (bool(mine) or time.monotonic() > deadline)
