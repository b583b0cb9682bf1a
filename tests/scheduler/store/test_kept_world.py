"""A World kept for questions says what the rows say, whatever happened to them since it was read."""

from __future__ import annotations

import pytest
from django.db import transaction

from accounts.models import Cluster
from gpus.models import Device, Node
from queues.models import FlavorQuota, PodSet, Workload
from scheduler.leader.engine import Engine
from scheduler.store.kept_world import forget_world, kept_world
from scheduling.world import World
from tests.factories import START, make_cluster, make_cluster_queue, make_node, make_workload

pytestmark = pytest.mark.django_db(transaction=True)
NOW = START.timestamp() + 1000


@pytest.fixture
def cluster() -> Cluster:
    """10 cpu, two workloads that wait for one each, and a node with a device."""
    cluster = make_cluster()
    make_cluster_queue(cluster)
    make_workload(cluster, "a")
    make_workload(cluster, "b")
    make_node(cluster, "n1", [{}])
    return cluster


def numbers(world: World) -> tuple[object, ...]:
    """What a World knows, to compare two of them."""
    return (
        world.cluster_queue_status("main"),
        [world.workload(f"team/{name}") for name in "abc"],
        world.fragmentation(),
        [(view.workload, view.position) for view in world.pending("main")],
    )


def kept_and_read_anew(cluster: Cluster) -> tuple[tuple[object, ...], tuple[object, ...]]:
    cluster = Cluster.objects.get(pk=cluster.pk)
    with kept_world(cluster, NOW) as world:
        kept = numbers(world)
    forget_world(cluster)
    with kept_world(cluster, NOW) as world:
        return kept, numbers(world)


def test_it_follows_the_rows(cluster: Cluster) -> None:
    with kept_world(cluster, NOW) as world:
        assert [view.workload for view in world.pending("main")] == ["team/a", "team/b"]
    Engine(cluster, "test", clock=lambda: NOW).run()
    with kept_world(cluster, NOW) as world:
        assert (world.cluster_queue_status("main").reserving, world.pending("main")) == (2, ())
    Workload.objects.filter(name="a").delete()
    FlavorQuota.objects.update(nominal_quota=5000)
    PodSet.objects.update(count=3)
    make_workload(cluster, "c", {"cpu": "7"})
    Node.objects.create(cluster=cluster, name="n2", created_at=START)
    Device.objects.update(cordoned=True)
    with kept_world(cluster, NOW) as world:
        (usage,) = world.cluster_queue_status("main").usage
        assert (usage.nominal, world.workload("team/a")) == (5000, None)
        assert [view.workload for view in world.pending("main")] == ["team/c"]
    kept, anew = kept_and_read_anew(cluster)
    assert kept == anew


def test_two_changes_in_one_transaction_are_two_changes(cluster: Cluster) -> None:
    with transaction.atomic():
        Workload.objects.filter(name="a").update(priority=1)
        with kept_world(cluster, NOW) as world:
            assert [view.workload for view in world.pending("main")] == ["team/a", "team/b"]
        Workload.objects.filter(name="b").update(priority=2)
        Workload.objects.filter(name="a").update(priority=3)
        Workload.objects.filter(name="a").update(priority=0)
        with kept_world(cluster, NOW) as world:
            assert [view.workload for view in world.pending("main")] == ["team/b", "team/a"]


def test_other_settings_of_the_cluster_are_read_anew(cluster: Cluster) -> None:
    with kept_world(cluster, NOW) as world:
        assert world.configuration.fair_sharing is None
    cluster.configuration = {"fairSharing": {"enable": True}}
    cluster.save()
    with kept_world(Cluster.objects.get(pk=cluster.pk), NOW) as world:
        assert world.configuration.fair_sharing is not None
        assert len(world.pending("main")) == 2


def test_after_an_error_it_is_read_anew(cluster: Cluster) -> None:
    def fail() -> None:
        with kept_world(cluster, NOW) as world:
            world.delete_workload("team/a")
            world.explain("team/none")

    with pytest.raises(KeyError):
        fail()
    with kept_world(cluster, NOW) as world:
        assert len(world.pending("main")) == 2
