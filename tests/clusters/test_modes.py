"""What we do with a cluster by its mode: in `observe` and `shadow` it is only read, in `schedule` we decide."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command

from accounts.models import Cluster, ClusterMode, Namespace
from clusters.api_errors import ClusterError
from clusters.api_objects import LEASES, NAMESPACES, PODS
from clusters.audit.auditor import audited_clusters
from clusters.client_credentials import connect
from clusters.connection import client_for
from clusters.jobs.registry import JOB_KINDS
from clusters.leases import KUEUES_LEASE, KUEUES_NAMESPACE, holder_of
from clusters.push.installation import identity
from clusters.push.kueues_lease import KueuesLease
from clusters.sync.watcher import Watcher
from clusters.tasks import push_cluster
from foundation.redis_client import redis_client
from foundation.wake_ups import PUSH_TASK
from queues.models import Workload
from scheduler.tasks import _scheduled
from scheduling.model.times import rfc3339
from scheduling.model.vocabulary import WorkloadStatus
from tests.clusters.system import System, gpu_job
from tests.factories import make_cluster
from tests.simulated_cluster import ServerThread, make_simulated, pod

pytestmark = pytest.mark.django_db(transaction=True)
MIRRORED = [ClusterMode.OBSERVE, ClusterMode.SHADOW]


@pytest.fixture
def server() -> Iterator[ServerThread]:
    with ServerThread(make_simulated()) as server:
        yield server


@pytest.mark.parametrize("mode", MIRRORED)
def test_nothing_is_written_to_a_cluster_that_another_scheduler_runs(server: ServerThread, mode: str) -> None:
    """A job of each stage of its life is there when the mode changes: one waits, one was decided and not yet told."""
    system = System(server)
    system.submit(gpu_job("told"))
    system.turn()
    system.submit(gpu_job("decided"))
    system.engine.run()
    assert Workload.objects.filter(status=WorkloadStatus.ADMITTED, pushed_sequence=0).exists()
    Cluster.objects.update(mode=mode)  # set_cluster refuses it: the job that we started runs
    server.guard.closed = True
    push_cluster()
    push_cluster("default")
    system.watcher.resync()
    system.advance(60)
    system.watcher.resync()
    call_command("watch_cluster", cluster="default", once=True, stdout=StringIO())
    assert server.guard.refused == []
    assert audited_clusters() == []
    assert _scheduled() == []


def test_a_cluster_that_does_not_answer_holds_up_no_other(server: ServerThread) -> None:
    """The tick gives each its own task, and is done before any of them is asked."""
    system = System(server)
    make_cluster("away", server_url="http://127.0.0.1:9")
    system.submit(gpu_job())
    system.engine.run()
    names = [f"kueueweb:wake:{PUSH_TASK}:{name}" for name in ("default", "away")]
    redis_client().delete(*names)
    push_cluster()
    assert redis_client().exists(*names) == 2
    push_cluster("away")
    push_cluster("default")
    assert [each["metadata"]["name"] for each in system.client.list(JOB_KINDS["Job"].resource).items] == ["train"]


def test_the_guard_of_these_tests_sees_what_is_written(server: ServerThread) -> None:
    system = System(server)
    system.submit(gpu_job())
    system.engine.run()
    server.guard.closed = True
    system.push()
    assert server.guard.refused


@pytest.mark.parametrize("mode", MIRRORED)
def test_the_client_of_such_a_cluster_refuses_to_write(server: ServerThread, mode: str) -> None:
    cluster = System(server).cluster
    cluster.mode = mode
    with pytest.raises(ClusterError, match=r"ReadOnly: POST .*: this client only reads"):
        client_for(cluster).create(PODS, pod())
    cluster.mode = ClusterMode.SCHEDULE
    client_for(cluster).create(PODS, pod())
    with pytest.raises(ClusterError, match="ReadOnly"):
        client_for(cluster, read_only=True).delete(PODS, "default", "worker")
    assert len(connect(server.url).list(PODS).items) == 1


def test_a_cluster_has_mode_schedule_by_default(db: None) -> None:
    call_command("set_cluster", cluster="west", server_url="https://10.0.0.1:6443")
    west = Cluster.objects.get()
    assert (west.mode, west.server_url, west.is_mirrored) == ("schedule", "https://10.0.0.1:6443", False)
    call_command("set_cluster", cluster="west", mode="shadow")
    west.refresh_from_db()
    assert (west.mode, west.server_url, west.is_mirrored) == ("shadow", "https://10.0.0.1:6443", True)
    assert not Namespace.objects.exists()


def lease(renewed: str) -> dict[str, Any]:
    spec = {"holderIdentity": "kueue-controller-manager-0", "renewTime": renewed}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": KUEUES_LEASE, "namespace": KUEUES_NAMESPACE},
        "spec": spec,
    }


def test_nothing_is_pushed_beside_a_kueue_that_decides(server: ServerThread) -> None:
    """Both started and stopped the same jobs, four times in eight seconds."""
    system = System(server)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": KUEUES_NAMESPACE}}
    system.client.create(NAMESPACES, namespace)
    system.client.create(LEASES, lease(rfc3339(system.moment())))
    system.watcher.resync()
    system.cluster.refresh_from_db()
    assert (system.cluster.kueue_is_alive, system.cluster.kueue_holder) == (True, "kueue-controller-manager-0")
    system.submit(gpu_job())
    system.engine.run()
    server.guard.closed = True
    assert system.push().pushed == 0
    assert server.guard.refused == []

    server.guard.closed = False
    system.advance(200)  # the lease is not renewed any more
    system.watcher.resync()
    system.cluster.refresh_from_db()
    assert system.push().pushed == 1
    system.watcher.resync()
    assert (system.watched().kueue_is_alive, system.watched().kueue_holder) == (False, ""), "our hold is no Kueue"


def kueues_lease(system: System) -> dict[str, Any]:
    found = system.client.get(LEASES, KUEUES_NAMESPACE, KUEUES_LEASE)
    assert found is not None
    return found


def test_while_we_decide_kueues_lease_is_ours_and_given_back(server: ServerThread) -> None:
    """A Kueue that is started by mistake found the lease free, led, and ended what we had started."""
    system = System(server)
    system.push()
    assert system.client.get(LEASES, KUEUES_NAMESPACE, KUEUES_LEASE) is None, "there is no namespace of a Kueue"
    system.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": KUEUES_NAMESPACE}})
    steady = [0.0]
    ours = KueuesLease(identity(), lambda: steady[0])
    assert ours.holds(system.cluster, system.client)
    assert holder_of(kueues_lease(system)) == identity()
    first = kueues_lease(system)["spec"]
    assert first["leaseDurationSeconds"] == 24 * 3600, "a standby waits that long after we fall silent"
    steady[0] += 11
    assert ours.holds(system.cluster, system.client)
    assert kueues_lease(system)["spec"]["acquireTime"] == first["acquireTime"]
    assert kueues_lease(system)["spec"]["renewTime"] > first["renewTime"]

    call_command("set_cluster", mode="observe")
    push_cluster("default")
    assert holder_of(kueues_lease(system)) == ""


def test_a_kueue_that_leads_is_seen_before_the_watcher_looks(server: ServerThread) -> None:
    system = System(server)
    system.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": KUEUES_NAMESPACE}})
    system.client.create(LEASES, lease(rfc3339(system.moment())))
    assert not KueuesLease(identity()).holds(system.cluster, system.client)
    system.submit(gpu_job())
    system.engine.run()
    assert system.push().pushed == 0
    assert holder_of(kueues_lease(system)) == "kueue-controller-manager-0"


def test_kueues_configuration_says_where_its_lease_is(server: ServerThread) -> None:
    system = System(server)
    election = {"leaderElect": True, "resourceName": "own", "resourceNamespace": "kueue-here"}
    system.cluster.configuration = {"leaderElection": election, "namespace": "kueue-there"}
    system.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kueue-here"}})
    assert KueuesLease(identity()).holds(system.cluster, system.client)
    assert holder_of(system.client.get(LEASES, "kueue-here", "own")) == identity()


def test_a_cluster_without_kueue_has_no_lease_of_it(server: ServerThread) -> None:
    system = System(server)
    assert (system.cluster.kueue_renewed_at, system.cluster.kueue_is_alive) == (None, False)


def test_a_kueue_whose_clock_differs_lives_as_long_as_it_renews(server: ServerThread) -> None:
    """A Kueue an hour behind us was taken for dead, and we pushed beside it."""
    system = System(server)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": KUEUES_NAMESPACE}}
    system.client.create(NAMESPACES, namespace)
    system.client.create(LEASES, lease(rfc3339(system.moment() - timedelta(hours=1))))
    for _ in range(5):
        system.watcher.resync()
        assert system.watched().kueue_is_alive
        system.advance(60)
        renewed = {"renewTime": rfc3339(system.moment() - timedelta(hours=1))}
        system.client.patch(LEASES, KUEUES_NAMESPACE, KUEUES_LEASE, {"spec": renewed})
    system.watcher.resync()
    system.advance(200)
    system.watcher.resync()
    assert not system.watched().kueue_is_alive
    again = Watcher(system.cluster, system.client, clock=system.now, steady=system.now)
    again.resync()
    assert not system.watched().kueue_is_alive, "another watcher knows that the lease is the one that was left behind"
    system.client.patch(LEASES, KUEUES_NAMESPACE, KUEUES_LEASE, {"spec": {"holderIdentity": ""}})
    again.resync()
    assert (system.watched().kueue_is_alive, system.watched().kueue_holder) == (False, "")
