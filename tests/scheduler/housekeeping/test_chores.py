"""Housekeeping is sent to the push workers only while there is work for it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.conf import settings
from django.db import connection
from django.test.utils import CaptureQueriesContext
from redis import Redis

from accounts.chores import due_chores
from accounts.models import AuditVerb, Cluster
from accounts.services.audit import record, write_unsent
from kueueweb.celery import app
from queues.models import AdmissionCheck, MultiKueueCluster
from scheduler.tasks import keep_house
from tests.factories import START, make_cluster

pytestmark = pytest.mark.django_db

QUEUE = "kueueweb:celery:push"


@pytest.fixture
def cluster() -> Cluster:
    app.loader.import_default_modules()
    found = make_cluster()
    write_unsent()
    return found


def check(controller: str) -> Callable[[Cluster], object]:
    return lambda cluster: AdmissionCheck.objects.create(
        cluster=cluster, name="check", controller_name=controller, created_at=START
    )


def retain(cluster: Cluster) -> None:
    configuration = {"objectRetentionPolicies": {"workloads": {"afterFinished": "10m"}}}
    Cluster.objects.filter(pk=cluster.pk).update(configuration=configuration)


@pytest.mark.parametrize(
    ("make", "task"),
    [
        (check("kueueweb.io/webhook"), "scheduler.tasks.ask_webhook_checks"),
        (check("kueue.x-k8s.io/multikueue"), "clusters.tasks.follow_managers"),
        (
            lambda cluster: MultiKueueCluster.objects.create(cluster=cluster, name="worker", created_at=START),
            "clusters.tasks.follow_managers",
        ),
        (retain, "scheduler.tasks.apply_retention"),
        (lambda _: record(AuditVerb.LOGIN, "Session", name="alice"), "scheduler.tasks.stream_audit"),
    ],
)
def test_a_task_is_due_while_it_has_work(cluster: Cluster, make: Callable[[Cluster], object], task: str) -> None:
    make(cluster)
    assert task in due_chores()
    assert task in app.tasks


def test_at_rest_one_query_and_no_message(cluster: Cluster, live_services: None) -> None:
    with Redis.from_url(settings.REDIS_URL) as redis, CaptureQueriesContext(connection) as queries:
        before = redis.llen(QUEUE)
        keep_house()
        assert (len(queries), redis.llen(QUEUE)) == (1, before)
        check("kueueweb.io/webhook")(cluster)
        write_unsent()
        keep_house()
        assert redis.llen(QUEUE) == before + 1
        redis.ltrim(QUEUE, 1, -1)
