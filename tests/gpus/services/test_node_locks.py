"""Rows of nodes and devices, while a batch of decisions that refers to them is being committed."""

from collections.abc import Callable
from threading import Event, Thread

import psycopg
import pytest
from django.db import connection

from gpus.models import Node
from gpus.services import observed_node, sync_foreign_usage, sync_node
from tests.acceptance.processes import database_url
from tests.factories import make_cluster, make_node, make_workload

pytestmark = pytest.mark.django_db(transaction=True)

_SLICE = """
    INSERT INTO gpus_deviceallocation (cluster_id, node_id, device_id, device_uuid, workload_id, source, pod_set,
        replica, container, container_index, namespace, pod_name, pod_uid, memory_mib, cores_percent, slots, malformed,
        created_at, qos_policy, app_class)
    SELECT node.cluster_id, node.id, device.id, device.uuid, workload.id, 'decided', 'main', 0, 'main', 0, 'team',
        '', '', 1, 1, 1, '', now(), '', ''
    FROM gpus_node AS node JOIN gpus_device AS device ON device.node_id = node.id, queues_workload AS workload
"""


def _new_usage(cluster_id: int) -> None:
    sync_foreign_usage(cluster_id, {"node-1": {"cpu": 1000, "pods": 1}}, {})


def _new_readiness(cluster_id: int) -> None:
    sync_node(cluster_id, observed_node({"metadata": {"name": "node-1", "uid": "u"}, "spec": {}, "status": {}}))


@pytest.mark.parametrize("write", [_new_usage, _new_readiness])
def test_a_batch_commits_while_what_was_seen_is_written(write: Callable[[int], None]) -> None:
    cluster = make_cluster()
    make_node(cluster, "node-1", [{"uuid": "GPU-1"}])
    make_workload(cluster, "train")

    def watch() -> None:
        write(cluster.pk)
        connection.close()

    watching = Thread(target=watch)
    with psycopg.connect(database_url()) as batch, psycopg.connect(database_url(), autocommit=True) as observer:
        batch.execute("SET LOCAL kueueweb.unnoticed = 'on'; SET LOCAL lock_timeout = '10s'")
        batch.execute("SELECT 1 FROM accounts_cluster FOR SHARE")  # as the scheduler's batch begins
        batch.execute(_SLICE)
        watching.start()
        pause = Event()
        while not observer.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchone():
            assert watching.is_alive()
            pause.wait(0.01)
        batch.commit()  # checks that the node and the device are there
    watching.join()
    node = Node.objects.get()
    assert node.foreign_usage or node.uid == "u"
    assert node.device_allocations.count() == 1
