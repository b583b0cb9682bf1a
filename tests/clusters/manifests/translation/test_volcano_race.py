"""Two requests that bring the same Cohort at once: the second leaves the first one's as it is."""

from threading import Event, Thread

import psycopg
import pytest
from django.db import connection, transaction

from accounts.models import Cluster
from clusters.manifests import ApplyResult, apply_manifests
from clusters.manifests.apply import lock_applies
from queues.models import Cohort
from tests.acceptance.processes import database_url
from tests.manifest_texts import actions

pytestmark = pytest.mark.django_db(transaction=True)


def queue(name: str, cpu: int) -> str:
    return (
        f"apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {{name: {name}}}\n"
        f"spec: {{guarantee: {{resource: {{cpu: {cpu}}}}}}}\n"
    )


def test_a_cohort_that_comes_while_a_request_waits_stays_as_it_is() -> None:
    cluster = Cluster.objects.create(name="default")
    results: list[ApplyResult] = []

    def second() -> None:
        results.append(apply_manifests(cluster, queue("b", 1), user=None))
        connection.close()

    waiting = Thread(target=second)
    with psycopg.connect(database_url(), autocommit=True) as observer, transaction.atomic():
        lock_applies(cluster, against_decisions=False)
        waiting.start()
        pause = Event()
        while not observer.execute("SELECT 1 FROM pg_locks WHERE NOT granted AND locktype = 'advisory'").fetchone():
            assert waiting.is_alive()
            pause.wait(0.01)
        apply_manifests(cluster, queue("a", 2), user=None)
    waiting.join()
    assert actions(results[0]) == ["ClusterQueue b created"]
    assert Cohort.objects.get().node_quotas[0]["headroom"] == "2"
