"""Beat sends housekeeping to the push workers only while there is work for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.test.utils import CaptureQueriesContext
from redis import Redis

from accounts.models import AuditVerb, Cluster
from accounts.services.audit import record, write_unsent
from foundation.chores import CHORE_SECONDS, Chores
from history.models import Checkpoint
from history.services.checkpoints.checkpoint_taking import take_checkpoint
from kueueweb.celery import BeatScheduler, app
from notifications.models import NotificationRule
from queues.models import AdmissionCheck, ClusterQueue, Job, MultiKueueCluster, Workload
from tests.factories import START, make_cluster, make_cluster_queue, make_workload
from tests.users import make_user

pytestmark = pytest.mark.django_db

QUEUE = "kueueweb:celery:push"


@pytest.fixture
def cluster() -> Cluster:
    app.loader.import_default_modules()
    found = make_cluster()
    take_checkpoint(found)
    write_unsent()
    return found


def check(controller: str) -> Callable[[Cluster], object]:
    return lambda cluster: AdmissionCheck.objects.create(
        cluster=cluster, name="check", controller_name=controller, created_at=START
    )


def retain(cluster: Cluster) -> None:
    configuration = {"objectRetentionPolicies": {"workloads": {"afterFinished": "10m"}}}
    Cluster.objects.filter(pk=cluster.pk).update(configuration=configuration)


def rule(cluster: Cluster) -> None:
    NotificationRule.objects.create(cluster=cluster, user=make_user("alice"), event="Started", created_at=START)


def follow_nodes(cluster: Cluster) -> None:
    ClusterQueue.objects.filter(pk=make_cluster_queue(cluster).pk).update(node_quotas=[{"flavor": "f"}])


def read_telemetry(cluster: Cluster) -> None:
    Cluster.objects.filter(pk=cluster.pk).update(telemetry_urls=["http://127.0.0.1:9400/metrics"])


def start_after(cluster: Cluster) -> None:
    Workload.objects.filter(pk=make_workload(cluster, "second", {"cpu": "1"}).pk).update(waits_for=["first"])
    succeeded(cluster, "first")


def succeeded(cluster: Cluster, name: str, **of_job: Any) -> None:
    job = Job.objects.create(
        cluster=cluster, namespace="team", name=name, kind="Job", manifest={}, created_at=START, **of_job
    )
    conditions = [{"type": "Finished", "status": "True", "reason": "Succeeded"}]
    row = make_workload(cluster, f"of-{name}", {"cpu": "1"})
    Workload.objects.filter(pk=row.pk).update(job=job, status="Finished", conditions=conditions)


def delete_when_done(cluster: Cluster) -> None:
    annotations = {"kueueweb.io/job-retain-policy": "delete"}
    succeeded(cluster, "a", labels={"volcano.sh/createdByJobFlow": "team.f"}, annotations=annotations)


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
        (rule, "notifications.tasks.notify"),
        (follow_nodes, "scheduler.tasks.follow_nodes"),
        (read_telemetry, "scheduler.tasks.sample_telemetry"),
        (start_after, "scheduler.tasks.run_flows"),
        (delete_when_done, "scheduler.tasks.run_flows"),
        (lambda _: Checkpoint.objects.all().delete(), "history.tasks.take_checkpoints"),
        (lambda _: record(AuditVerb.LOGIN, "Session", name="alice"), "scheduler.tasks.stream_audit"),
    ],
)
def test_a_task_is_due_while_it_has_work(cluster: Cluster, make: Callable[[Cluster], object], task: str) -> None:
    make(cluster)
    assert task in Chores().due()
    assert task in app.tasks


def test_flows_that_wait_for_nothing_that_has_succeeded_are_left_alone(cluster: Cluster) -> None:
    start_after(cluster)
    delete_when_done(cluster)
    Workload.objects.exclude(name="second").update(conditions=[{"type": "Finished", "reason": "Failed"}])
    assert "scheduler.tasks.run_flows" not in Chores().due()


def test_at_rest_one_query_and_no_message(cluster: Cluster, live_services: None) -> None:
    with Redis.from_url(settings.REDIS_URL) as redis, CaptureQueriesContext(connection) as queries:
        before = redis.llen(QUEUE)
        BeatScheduler(app=app, lazy=True).keep_house()
        assert (len(queries), redis.llen(QUEUE)) == (1, before)
        check("kueueweb.io/webhook")(cluster)
        write_unsent()
        for _ in range(2):  # as two beats do
            BeatScheduler(app=app, lazy=True).keep_house()
        assert redis.llen(QUEUE) == before + 1
        redis.ltrim(QUEUE, 1, -1)


def test_a_task_is_looked_for_once_in_its_time(cluster: Cluster) -> None:
    now = [0.0]
    chores = Chores(lambda: now[0])
    rule(cluster)
    retain(cluster)
    write_unsent()
    tasks = {"scheduler.tasks.apply_retention": 2.0, "notifications.tasks.notify": 10.0}
    assert chores.due() == tasks
    with CaptureQueriesContext(connection) as queries:
        assert chores.due() == {}
    assert len(queries) == 0
    found = []
    for _ in range(5):
        now[0] += CHORE_SECONDS
        found.append(set(chores.due()))
    assert found == [{"scheduler.tasks.apply_retention"}] * 4 + [set(tasks)]
