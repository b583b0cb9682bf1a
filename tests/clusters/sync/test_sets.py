"""The pods of a StatefulSet that needs no workload wait as members of its group."""

from __future__ import annotations

import pytest

from accounts.models import Cluster, Namespace
from clusters.api_objects import PODS, JsonObject, Kind
from clusters.client import Listing, WatchEvent
from clusters.jobs.framework.store import ObjectStore
from clusters.jobs.kinds.pod import group_name_of
from clusters.jobs.registry import JOB_KINDS
from clusters.jobs.scenario import NOW
from clusters.sync.sets import SetPodSync, SetSync
from clusters.sync.watcher import job_sync
from queues.models import Workload
from tests.clusters.test_pods_that_wait import stateful_set, webhooked
from tests.conformance.live_jobs import START, StoredCluster

_UID = "8a532403-a76a-4ada-a56e-d900841158d8"
_ANOTHER_UID = "0c1f3a86-3a4f-4f0e-8d0e-2d8f0e6b7a11"

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(("mode", "group"), [("schedule", "statefulset-db-"), ("observe", "")])
def test_only_its_own_pods_are_marked_where_this_scheduler_decides(mode: str, group: str) -> None:
    cluster = Cluster.objects.create(name="west", mode=mode)
    made = webhooked(stateful_set(0))
    made["metadata"] |= {"uid": _UID, "resourceVersion": "1"}
    store = ObjectStore([made, pod_of(made, "db-0", _UID), pod_of(made, "forged", _ANOTHER_UID)])
    kind = JOB_KINDS["StatefulSet"]
    job_sync(cluster, kind, StoredCluster(store)).apply([WatchEvent("MODIFIED", made)], START.timestamp())
    groups = {pod["metadata"]["name"]: group_name_of(pod) for pod in store.list("Pod")}
    assert groups["db-0"].startswith(group)
    assert bool(groups["db-0"]) == bool(group)
    assert groups["forged"] == ""
    assert not Workload.objects.exists()


class _CountingCluster(StoredCluster):
    """Counts how often pods are listed."""

    lists = 0

    def list(self, kind: Kind, namespace: str = "", *, label_selector: str = "", field_selector: str = "") -> Listing:
        self.lists += kind == PODS
        return super().list(kind, namespace, label_selector=label_selector, field_selector=field_selector)


def test_pods_are_listed_only_for_a_set_of_which_the_watcher_has_seen_one() -> None:
    cluster = Cluster.objects.create(name="west")
    made = webhooked(stateful_set(0))
    made["metadata"] |= {"uid": _UID, "resourceVersion": "1"}
    pod = pod_of(made, "db-0", _UID)
    store = ObjectStore([made, pod])
    client, pods = _CountingCluster(store), SetPodSync(cluster)
    sync = job_sync(cluster, JOB_KINDS["StatefulSet"], client, pods)
    assert isinstance(sync, SetSync)
    now = START.timestamp()
    pods.apply([Listing((), "1")], now)
    sync.apply([WatchEvent("MODIFIED", made)], now)
    sync.tick(now)
    assert client.lists == 0
    pods.apply([WatchEvent("ADDED", pod)], now)
    sync.tick(now)
    sync.tick(now)
    assert client.lists == 1
    assert group_name_of(store.list("Pod")[0]).startswith("statefulset-db-")
    pods.apply([WatchEvent("DELETED", pod)], now)
    sync.apply([WatchEvent("MODIFIED", made)], now)
    assert client.lists == 1


def test_one_that_waits_is_held_when_it_wants_no_pods_any_more() -> None:
    """It would take quota from others, and give it back with the next pass."""
    cluster = Cluster.objects.create(name="west")
    Namespace.objects.create(cluster=cluster, name="team", created_at=START)
    kind, held = JOB_KINDS["StatefulSet"], "StatefulSet scaled to zero; workload on hold"
    sync = job_sync(cluster, kind, StoredCluster(ObjectStore()))
    for version, (replicas, on_hold, count) in enumerate(((2, "", 2), (0, held, 2), (3, "", 3))):
        made = webhooked(stateful_set(replicas))
        made["metadata"] |= {"uid": _UID, "resourceVersion": str(version), "creationTimestamp": NOW}
        sync.apply([WatchEvent("MODIFIED", made)], START.timestamp())
        row = Workload.objects.get()
        assert (row.on_hold, row.pod_sets.get().count) == (on_hold, count)


def pod_of(made: JsonObject, name: str, owner_uid: str) -> JsonObject:
    template = made["spec"]["template"]
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": owner_uid, "controller": True}
    metadata = {**template["metadata"], "namespace": "team", "name": name, "uid": name, "ownerReferences": [owner]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"], "status": {}}
