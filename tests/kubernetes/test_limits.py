"""What limits a namespace, as a real API server stores it, completes it and enforces it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from clusters.api_objects import LIMIT_RANGES, RESOURCE_QUOTAS, RUNTIME_CLASSES, JsonObject, Kind
from queues.models import LimitRange, ResourceQuota, RuntimeClass
from scheduling.model.limit_range import with_api_defaults
from tests.clusters.system import gpu_job, queued
from tests.kubernetes.system import System
from tests.simulated_cluster import job

pytestmark = pytest.mark.django_db(transaction=True)

MEMORY = "limits.nvidia.com/gpumem"


def made(system: System, kind: Kind, name: str, **fields: Any) -> JsonObject:
    """An object of the kind, for this test only."""
    metadata = {"name": name, **({"namespace": "team"} if kind.namespaced else {})}
    return system.admin.apply(kind, {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **fields})


@pytest.fixture
def limits(system: System) -> Iterator[None]:
    """Nothing of it is left for the next test."""
    yield
    for kind in (RESOURCE_QUOTAS, LIMIT_RANGES, RUNTIME_CLASSES):
        for item in system.admin.list(kind).items:
            system.admin.delete(kind, item["metadata"].get("namespace", ""), item["metadata"]["name"])


def test_a_quota_of_devices_is_waited_for_and_its_edit_lets_the_job_in(system: System, limits: None) -> None:
    made(system, RESOURCE_QUOTAS, "gpus", spec={"hard": {MEMORY: "6000"}})
    system.turn()
    assert ResourceQuota.objects.get().hard == {MEMORY: "6k"}, "the server writes quantities in its own way"
    for name in ("first", "second"):
        system.submit(gpu_job(name, mib=4000, run_seconds=None))
        system.engine.run()
    system.until("the first one runs", lambda: system.phases("first") == ["Running"])
    second = system.workload("second")
    assert (second.status, second.reason) == ("Pending", "WaitingForDevices")
    assert "ResourceQuota team/gpus allows its namespace 6000" in second.message
    made(system, RESOURCE_QUOTAS, "gpus", spec={"hard": {MEMORY: "8000"}})
    system.until("the second one runs", lambda: system.phases("second") == ["Running"])


def test_limit_ranges_are_completed_as_the_server_does_it(system: System, limits: None) -> None:
    for entry in (
        {"type": "Pod", "max": {"cpu": "4"}},
        {"type": "Container", "max": {"cpu": "4"}, "min": {"memory": "1Mi"}},
        {"type": "Container", "default": {"cpu": "4"}, "min": {"cpu": "1"}, "maxLimitRequestRatio": {"cpu": "8"}},
        {"type": "Container", "max": {"cpu": "4"}, "min": {"cpu": "100m"}, "defaultRequest": {"cpu": "500m"}},
    ):
        stored = made(system, LIMIT_RANGES, "sizes", spec={"limits": [entry]})
        assert stored["spec"]["limits"] == [with_api_defaults(entry)]
    system.turn()
    assert LimitRange.objects.get().limits == [with_api_defaults(entry)]
    system.submit(queued(job("plain", requests={}, run_seconds=None)))
    system.until("it runs", lambda: system.phases("plain") == ["Running"])
    (pod_set,) = system.workload("plain").pod_sets.all()
    (pod,) = system.pods("plain")
    resources = pod["spec"]["containers"][0]["resources"]
    assert pod_set.resource_usage == {"cpu": 500}
    assert resources == {"limits": {"cpu": "4"}, "requests": {"cpu": "500m"}}


def test_what_the_server_would_refuse_waits(system: System, limits: None) -> None:
    made(system, LIMIT_RANGES, "sizes", spec={"limits": [{"type": "Pod", "max": {"cpu": "500m"}}]})
    system.turn()
    system.submit(queued(job("large", run_seconds=None)))
    system.turn()
    large = system.workload("large")
    assert (large.reason, system.pods("large")) == ("Misconfigured", [])
    system.admin.delete(LIMIT_RANGES, "team", "sizes")
    system.until("it runs", lambda: system.phases("large") == ["Running"])


def test_an_overhead_is_counted(system: System, limits: None) -> None:
    made(system, RUNTIME_CLASSES, "kata", handler="kata", overhead={"podFixed": {"cpu": "250m"}})
    system.turn()
    assert RuntimeClass.objects.get().pod_overhead == {"cpu": "250m"}
    body = queued(job("boxed", run_seconds=None))
    body["spec"]["template"]["spec"]["runtimeClassName"] = "kata"
    system.submit(body)
    system.until("it runs", lambda: system.phases("boxed") == ["Running"])
    (pod_set,) = system.workload("boxed").pod_sets.all()
    (pod,) = system.pods("boxed")
    assert (pod_set.resource_usage, pod["spec"]["overhead"]) == ({"cpu": 1250}, {"cpu": "250m"})
