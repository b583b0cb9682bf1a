"""Two installations of kueueweb on one cluster: one pushes, the other says so, and takes over when that one is gone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from accounts.models import Cluster
from clusters.api_objects import LEASES
from clusters.leases import LeaseWatch
from clusters.push.installation import LEASE, NAMESPACE, Installation, identity, pushes_alone
from tests.clusters.system import System, gpu_job
from tests.simulated_cluster import ServerThread, make_simulated

pytestmark = pytest.mark.django_db(transaction=True)


class Steady:
    """A clock that only goes forward, and only when it is told to."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def system() -> Iterator[System]:
    with ServerThread(make_simulated()) as server:
        yield System(server)


def holder(system: System) -> str:
    lease = system.client.get(LEASES, NAMESPACE, LEASE)
    assert lease is not None
    return str(lease["spec"]["holderIdentity"])


def test_the_second_one_waits_until_the_lease_is_not_renewed(system: System) -> None:
    clock = Steady()
    first, second = Installation("first", clock), Installation("second", clock)
    cluster, client = system.cluster, system.client
    assert first.holds(cluster, client)
    assert not second.holds(cluster, client)
    assert Cluster.objects.get(pk=cluster.pk).lease_holder == "first"
    for _ in range(10):
        clock.seconds += 15
        assert first.holds(cluster, client)
        assert not second.holds(cluster, client)
    for _ in range(3):
        clock.seconds += 15
        assert not second.holds(cluster, client), "the first one may be slow"
    clock.seconds += 15
    assert second.holds(cluster, client)
    assert (holder(system), cluster.lease_holder) == ("second", "")
    assert not first.holds(cluster, client), "it sees that when it is back"


def test_the_holders_clock_does_not_matter(system: System) -> None:
    clock = Steady()
    mine = Installation("mine", clock)
    assert mine.holds(system.cluster, system.client)
    for minutes in range(4):
        spec = {"holderIdentity": "theirs", "renewTime": f"1999-01-01T00:0{minutes}:00.000000Z"}
        system.client.patch(LEASES, NAMESPACE, LEASE, {"spec": spec})
        clock.seconds += 50
        assert not mine.holds(system.cluster, system.client)
    clock.seconds += 61
    assert mine.holds(system.cluster, system.client)


def test_nothing_is_pushed_beside_another_one(system: System) -> None:
    assert pushes_alone(system.cluster, system.client)
    assert holder(system) == identity()
    Installation("other")._take(system.client, system.client.get(LEASES, NAMESPACE, LEASE))
    system.submit(gpu_job())
    system.engine.run()
    assert system.push().pushed == 1, "it is looked at each ten seconds"
    later = Installation(identity())
    assert not later.holds(system.cluster, system.client)
    assert Cluster.objects.get(pk=system.cluster.pk).lease_holder == "other"


def test_a_lease_is_as_old_as_it_was_seen_unchanged() -> None:
    clock = Steady()
    watch = LeaseWatch(clock)
    lease = {"spec": {"holderIdentity": "it", "renewTime": "2030-01-01T00:00:00Z"}}
    assert watch.look(lease) == 0
    clock.seconds += 40
    assert watch.look(lease) == 40
    assert watch.look({"spec": {**lease["spec"], "renewTime": "1970-01-01T00:00:00Z"}}) == 0
