"""Other processes that change rows while a sweep runs, or just before it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from accounts.cluster_versions import cluster_versions
from clusters.api_errors import ClusterUnreachable
from clusters.api_objects import LEASES, JsonObject, Kind
from clusters.client import ClusterClient
from clusters.push.desired_state import surroundings_of
from clusters.push.sweep import push_pending
from queues.models import Job, Pod, Workload
from queues.services.workloads import record_finished
from tests.cluster_kinds import JOBS
from tests.clusters.system import System, gpu_job

pytestmark = pytest.mark.django_db(transaction=True)


class _InterruptedClient:
    """A client during whose first look at the push lease another process does something."""

    def __init__(self, client: ClusterClient, meanwhile: Callable[[], object]) -> None:
        self._client = client
        self._meanwhile: Callable[[], object] | None = meanwhile
        self.server = f"{client.server}/interrupted"

    def get(self, kind: Kind, namespace: str, name: str) -> JsonObject | None:
        meanwhile = self._meanwhile if kind is LEASES else None
        if meanwhile is not None:
            self._meanwhile = None
            meanwhile()
        return self._client.get(kind, namespace, name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


def test_a_job_starts_with_the_labels_of_the_configuration_that_admitted_it(system: System) -> None:
    system.submit(gpu_job("before"))
    system.engine.run()
    system.submit(gpu_job("after"))
    assert surroundings_of(system.cluster, cluster_versions()[system.cluster.pk]).flavors["gpu-flavor"].node_labels

    def edit_and_admit() -> None:
        flavor = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ResourceFlavor", "metadata": {"name": "gpu-flavor"}}
        system.apply({**flavor, "spec": {"nodeLabels": {}}})
        system.engine.run()

    push_pending(system.cluster, cast("ClusterClient", _InterruptedClient(system.client, edit_and_admit)), system.now)
    assert system.workload("after").status == "Admitted"
    started = system.client.get(JOBS, "team", "after")
    assert started is not None
    assert "gpu" not in (started["spec"]["template"]["spec"].get("nodeSelector") or {})


def test_an_end_that_is_committed_after_the_last_pod_ended_is_settled_by_its_push(system: System) -> None:
    system.submit(gpu_job(run_seconds=1000))
    for _ in range(2):
        system.turn()
    row = system.workload()
    assert record_finished(system.cluster, [(row.namespace, row.name)]) == []
    Pod.objects.update(phase="Succeeded")  # the watcher stored it in a turn that saw no end of the job
    system.push()
    assert (system.workload().status, system.workload().reason) == ("Finished", "Succeeded")


class _VanishingClient:
    """A client whose cluster stops answering when anything about one namespace is asked."""

    def __init__(self, client: ClusterClient, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self.server = f"{client.server}/vanishing"

    def get(self, kind: Kind, namespace: str, name: str) -> JsonObject | None:
        if namespace == self._namespace:
            raise ClusterUnreachable("nothing answers")
        return self._client.get(kind, namespace, name)

    def create(self, kind: Kind, item: JsonObject, *, dry_run: bool = False) -> JsonObject:
        if item["metadata"].get("namespace") == self._namespace:
            raise ClusterUnreachable("nothing answers")
        return self._client.create(kind, item, dry_run=dry_run)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


def test_an_end_is_settled_although_the_cluster_stops_answering_for_a_later_workload(system: System) -> None:
    system.submit(gpu_job(run_seconds=1000))
    for _ in range(2):
        system.turn()
    row = system.workload()
    assert record_finished(system.cluster, [(row.namespace, row.name)]) == []
    Pod.objects.update(phase="Succeeded")
    system.submit(gpu_job("later"))
    system.engine.run()
    Workload.objects.filter(name__contains="later").update(namespace="away")
    Job.objects.filter(name="later").update(namespace="away")
    push_pending(system.cluster, cast("ClusterClient", _VanishingClient(system.client, "away")), system.now)
    found = Workload.objects.get(pk=row.pk)
    assert (found.status, found.reason) == ("Finished", "Succeeded")
