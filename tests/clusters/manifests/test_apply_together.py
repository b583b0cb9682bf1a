"""Two applies at once: they take turns, and the second sees what the first did."""

import threading

import pytest
from django.db import connection, transaction

from accounts.models import Cluster, Namespace
from clusters.manifests import ApplyResult, apply_manifests
from queues.models import ClusterQueue, Workload
from tests import manifest_texts as texts

pytestmark = pytest.mark.django_db(transaction=True)

TEXT = texts.joined(texts.namespace(), texts.cluster_queue(), texts.local_queue(), texts.job(), texts.workload())


def test_the_second_finds_everything_unchanged() -> None:
    cluster = Cluster.objects.create(name="default")
    results: list[ApplyResult] = []

    def run() -> None:
        try:
            results.append(apply_manifests(cluster, TEXT, user=None))
        finally:
            connection.close()

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    outcomes = sorted("/".join({applied.action.value for applied in result.objects}) for result in results)
    assert outcomes == ["created", "unchanged", "unchanged", "unchanged"]
    assert Workload.objects.count() == 2


def test_a_dry_run_inside_a_transaction_takes_back_only_itself() -> None:
    cluster = Cluster.objects.create(name="default")
    with transaction.atomic():
        apply_manifests(cluster, texts.namespace(), user=None)
        apply_manifests(cluster, texts.cluster_queue(), user=None, dry_run=True)
    assert Namespace.objects.count() == 1
    assert not ClusterQueue.objects.exists()
