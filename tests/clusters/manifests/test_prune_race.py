"""Prune against a scheduler that reserves quota at this moment."""

from threading import Event, Thread

import psycopg
import pytest
from django.db import connection

from accounts.models import Cluster
from clusters.manifests import ApplyResult, apply_manifests
from queues.models import Workload
from tests import manifest_texts as texts
from tests.acceptance.processes import database_url

pytestmark = pytest.mark.django_db(transaction=True)


def test_what_gets_quota_at_this_moment_is_kept() -> None:
    cluster = Cluster.objects.create(name="default")
    apply_manifests(cluster, f"{texts.namespace()}\n---\n{texts.workload()}", user=None, applied_set="a")
    results: list[ApplyResult] = []

    def prune() -> None:
        results.append(apply_manifests(cluster, texts.namespace(), user=None, applied_set="a", prune=True))
        connection.close()

    pruning = Thread(target=prune)
    with psycopg.connect(database_url()) as batch, psycopg.connect(database_url(), autocommit=True) as observer:
        batch.execute("SELECT 1 FROM accounts_cluster FOR SHARE")  # as the scheduler's batch begins
        batch.execute("UPDATE queues_workload SET quota_reserved_at = now()")
        pruning.start()
        waiting = Event()
        while not observer.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchone():
            assert pruning.is_alive()
            waiting.wait(0.01)
        batch.commit()
    pruning.join()
    assert "holds quota" in results[0].warnings[0]
    assert Workload.objects.get().finished_at is None
