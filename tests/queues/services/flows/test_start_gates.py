"""`kueueweb.io/start-after`: a job starts once the jobs that it names have succeeded."""

from __future__ import annotations

from threading import Thread
from typing import Any

import pytest
from django.db import connection, transaction

from accounts.models import Cluster
from clusters.manifests import ApplyResult, apply_manifests
from foundation.exceptions import ManifestErrors
from queues.models import Job, LocalQueue, Workload, WorkloadEvent
from queues.services.flows.flow_deletion import COMPLETED
from queues.services.flows.start_gates import lock_with_awaiting, met_query, open_start_gates
from queues.services.jobs import delete_jobs
from queues.services.workloads import delete_workloads, record_finished
from scheduler.leader.engine import Engine
from scheduling.model.vocabulary import FinishedReason
from tests.factories import START, make_cluster, make_cluster_queue
from tests.manifest_texts import job, workload
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def cluster() -> Cluster:
    """With room for nine cores in the LocalQueue team/queue."""
    cluster = make_cluster()
    make_cluster_queue(cluster, "cq", {"default-flavor": {"cpu": 9000}}, local_queue="")
    LocalQueue.objects.create(
        cluster=cluster, namespace="team", name="queue", cluster_queue_name="cq", created_at=START
    )
    return cluster


def apply(cluster: Cluster, *texts: str) -> ApplyResult:
    return apply_manifests(cluster, "---\n".join(texts), user=None)


def after(names: str, name: str = "second", more: str = "") -> str:
    return job(name, annotations=f'kueueweb.io/start-after: "{names}"{more}')


def waits(name: str = "second") -> list[str]:
    found: list[str] = Workload.objects.get(job__name=name).waits_for
    return found


def end(
    cluster: Cluster, name: str, reason: FinishedReason = FinishedReason.SUCCEEDED, namespace: str = "team"
) -> None:
    rows = Workload.objects.filter(job__name=name, namespace=namespace)
    record_finished(cluster, list(rows.values_list("namespace", "name")), reason, now=START)


def test_a_job_starts_after_the_jobs_that_it_names(cluster: Cluster) -> None:
    apply(cluster, after("first, other"), job("first"), job("other"))
    Engine(cluster, "test").run()
    row = Workload.objects.get(job__name="second")
    assert (row.status, row.reason, row.waits_for) == ("Pending", "AdmissionGated", ["first", "other"])
    end(cluster, "first")
    assert open_start_gates(cluster, START) == 0
    assert waits() == ["other"]
    end(cluster, "other")
    assert open_start_gates(cluster, START) == 1
    Engine(cluster, "test").run()
    row.refresh_from_db()
    assert (row.status, row.waits_for) == ("Admitted", [])
    told = WorkloadEvent.objects.filter(workload_name=row.name, reason="StartGateOpened").order_by("id")
    assert [event.message for event in told] == ["Succeeded: first", "Succeeded: other"]


@pytest.mark.parametrize("reason", [FinishedReason.FAILED, FinishedReason.CANCELLED])
def test_a_job_that_did_not_succeed_opens_no_gate(cluster: Cluster, reason: FinishedReason) -> None:
    apply(cluster, after("first"), job("first"))
    end(cluster, "first", reason)
    assert open_start_gates(cluster, START) == 0
    assert waits() == ["first"]


def test_a_job_of_another_namespace_opens_no_gate(cluster: Cluster) -> None:
    apply(cluster, after("first"), job("first").replace("namespace: team", "namespace: other"))
    end(cluster, "first", namespace="other")
    assert open_start_gates(cluster, START) == 0
    assert waits() == ["first"]


def test_all_jobs_of_the_name_must_have_succeeded_and_those_of_several_workloads_wholly(cluster: Cluster) -> None:
    apply(cluster, after("first"), job("first"))
    row = Workload.objects.get(job__name="first")
    Workload.objects.create(
        cluster=cluster, namespace="team", name="further", job=row.job, queue_name="queue", created_at=START
    )
    record_finished(cluster, [("team", row.name)], now=START)
    assert open_start_gates(cluster, START) == 0
    record_finished(cluster, [("team", "further")], now=START)
    assert open_start_gates(cluster, START) == 1


def test_a_workload_without_a_job_may_wait_too(cluster: Cluster) -> None:
    text = workload("late").replace("name: late,", "name: late, annotations: {kueueweb.io/start-after: first},")
    apply(cluster, text, job("first"))
    assert Workload.objects.get(name="late").waits_for == ["first"]
    end(cluster, "first")
    assert open_start_gates(cluster, START) == 1


@pytest.mark.parametrize(
    ("names", "rule"),
    [
        ("", "Required value"),
        ("First", "lower"),
        ("first,first", "Duplicate value"),
        ("second", "itself"),
        ("afterany:second", "itself"),
        ("afternotok:first", "supported conditions are afterany, after"),
        ("after:", "lower"),
        (",".join(f"j{number}" for number in range(65)), "at most 64"),
    ],
)
def test_a_mistake_in_the_annotation_is_refused(cluster: Cluster, names: str, rule: str) -> None:
    with pytest.raises(ManifestErrors) as caught:
        apply(cluster, after(names))
    (error,) = caught.value.errors
    assert error.path == "metadata.annotations[kueueweb.io/start-after]"
    assert rule in error.rule
    assert not Job.objects.exists()


def test_jobs_can_be_removed_from_the_annotation_and_not_added(cluster: Cluster) -> None:
    apply(cluster, after("first,other"))
    apply(cluster, after("first"))
    assert waits() == ["first"]
    with pytest.raises(ManifestErrors, match="can only be removed"):
        apply(cluster, after("first,third"))
    assert waits() == ["first"]


def test_an_edit_does_not_close_a_gate_that_has_opened(cluster: Cluster) -> None:
    apply(cluster, after("first,other"), job("first"))
    end(cluster, "first")
    open_start_gates(cluster, START)
    apply(cluster, after("first,other", more=", team: blue"))
    assert waits() == ["other"]


def test_a_new_workload_of_a_stored_job_waits_for_jobs_that_are_there(cluster: Cluster) -> None:
    apply(cluster, after("first,gone"), job("first"))
    Workload.objects.filter(job__name="second").delete()
    apply(cluster, after("first,gone", more=", team: blue"))
    assert waits() == ["first"]


@pytest.mark.parametrize(
    ("reason", "left"),
    [
        (FinishedReason.SUCCEEDED, []),
        (FinishedReason.WORKLOAD_SLICE_REPLACED, []),
        (FinishedReason.FAILED, ["first"]),
        (FinishedReason.CANCELLED, ["first"]),
    ],
)
def test_a_new_workload_of_a_stored_job_waits_for_a_job_that_did_not_succeed(
    cluster: Cluster, reason: FinishedReason, left: list[str]
) -> None:
    apply(cluster, after("first"), job("first"))
    end(cluster, "first", reason)
    Workload.objects.filter(job__name="second").delete()
    apply(cluster, after("first", more=", team: blue"))
    assert waits() == left


def test_a_gate_is_opened_once_however_many_look(cluster: Cluster) -> None:
    apply(cluster, after("first"), job("first"))
    end(cluster, "first")
    opened: list[int] = []

    def look() -> None:
        opened.append(open_start_gates(cluster, START))
        connection.close()

    looks = [Thread(target=look) for _ in range(4)]
    for thread in looks:
        thread.start()
    for thread in looks:
        thread.join()
    assert sorted(opened) == [0, 0, 0, 1]
    assert WorkloadEvent.objects.filter(reason="StartGateOpened").count() == 1


def test_a_look_can_leave_a_workload_that_another_transaction_changes(cluster: Cluster) -> None:
    apply(cluster, after("first"), job("first"))
    end(cluster, "first")
    opened: list[int] = []

    def look() -> None:
        opened.append(open_start_gates(cluster, START, later=True))
        connection.close()

    thread = Thread(target=look)
    with transaction.atomic():
        Workload.objects.select_for_update().get(job__name="second")
        thread.start()
        thread.join(PATIENCE_SECONDS)
        assert opened == [0], "it does not wait: the transaction may wait for a workload that the look has locked"
    thread.join()
    assert open_start_gates(cluster, START, later=True) == 1


def test_a_job_that_is_deleted_at_once_after_its_success_counts(cluster: Cluster) -> None:
    apply(cluster, after("first"), job("first"))
    end(cluster, "first")
    delete_jobs(cluster, Job.objects.filter(name="first").prefetch_related("workloads"), actor="alice", now=START)
    assert not Job.objects.filter(name="first").exists()
    assert waits() == []


def test_a_job_that_is_deleted_before_its_end_does_not_count(cluster: Cluster) -> None:
    apply(cluster, after("first"), job("first"))
    delete_jobs(cluster, Job.objects.filter(name="first").prefetch_related("workloads"), actor="alice", now=START)
    assert waits() == ["first"]


def test_a_success_counts_although_its_workload_is_deleted_at_once(cluster: Cluster) -> None:
    apply(cluster, after("first"), job("first"))
    end(cluster, "first")
    key = ("team", Workload.objects.get(job__name="first").name)
    assert delete_workloads(cluster, [key], actor="alice", now=START) == [key]
    assert waits() == []


def test_a_success_counts_although_the_name_is_used_again_at_once(cluster: Cluster) -> None:
    apply(cluster, after("first"), job("first"))
    end(cluster, "first")
    Job.objects.filter(name="first").update(deletion_requested_at=START)
    before = Job.objects.get(name="first").pk
    apply(cluster, job("first"))
    assert Job.objects.get(name="first").pk != before
    assert waits() == []


def test_two_deletions_do_not_wait_for_each_other(cluster: Cluster) -> None:
    apply(cluster, after("done", "x"), after("done", "y"), job("done"))
    end(cluster, "done")
    keys = {name: ("team", Workload.objects.get(job__name=name).name) for name in ("x", "y")}
    deleted: list[tuple[str, str]] = []

    def delete_x() -> None:
        try:
            deleted.extend(delete_workloads(cluster, [keys["x"]], actor="alice", now=START))
        finally:
            connection.close()

    other = Thread(target=delete_x)
    with transaction.atomic():
        Workload.objects.select_for_update().get(name=keys["y"][1])
        other.start()
        other.join(PATIENCE_SECONDS / 10)
        deleted += delete_workloads(cluster, [keys["y"]], actor="bob", now=START)
    other.join(PATIENCE_SECONDS)
    assert sorted(deleted) == sorted(keys.values())


def test_waiting_workloads_are_locked_by_a_hash_of_the_jobs(cluster: Cluster) -> None:
    """Without the hash, PostgreSQL compares each waiting workload with each job: minutes for thousands of both."""
    plan: list[str] = []

    def explain(execute: Any, sql: str, parameters: Any, many: bool, context: Any) -> Any:
        execute(f"EXPLAIN {sql}", parameters, many, context)
        plan.extend(line for (line,) in context["cursor"].fetchall())
        return execute(sql, parameters, many, context)

    with transaction.atomic(), connection.execute_wrapper(explain):
        lock_with_awaiting(cluster, [("team", "first")])
    assert any("hashed SubPlan" in line for line in plan)


def has_work() -> bool:
    """Whether the task of the gates runs."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT EXISTS ({met_query()})")
        return bool(cursor.fetchone()[0])


@pytest.mark.parametrize("reason", [FinishedReason.FAILED, FinishedReason.CANCELLED])
def test_the_task_runs_only_while_a_gate_can_open(cluster: Cluster, reason: FinishedReason) -> None:
    apply(cluster, after("first"), job("first"), job("other"))
    Job.objects.update(labels={"volcano.sh/createdByJobFlow": "team.f"})
    assert not has_work()
    end(cluster, "first")
    assert has_work()
    end(cluster, "other", reason)
    assert not has_work()
    assert open_start_gates(cluster, START) == 0
    Job.objects.filter(name="other").update(labels={})
    assert has_work()
    assert open_start_gates(cluster, START) == 1
    assert not has_work()


@pytest.mark.parametrize(
    ("item", "opened_by"),
    [("first", ["Succeeded"]), ("afterany:first", ["Failed", "Cancelled", "Succeeded"]), ("after:first", ["start"])],
)
def test_a_condition_is_met_as_in_slurm(cluster: Cluster, item: str, opened_by: list[str]) -> None:
    for step in ("start", "Failed", "Cancelled", "Succeeded"):
        Workload.objects.all().delete()
        Job.objects.all().delete()
        apply(cluster, after(item), job("first"))
        assert open_start_gates(cluster, START) == 0
        Engine(cluster, "test").run()
        assert Workload.objects.get(job__name="first").status == "Admitted"
        if step != "start":
            end(cluster, "first", FinishedReason(step))
        open_start_gates(cluster, START)
        assert (waits() == []) == (step in opened_by or item.startswith("after:"))


def test_a_start_counts_although_the_job_was_evicted_since(cluster: Cluster) -> None:
    apply(cluster, after("after:first"), after("afterany:first", "third"), job("first"))
    Engine(cluster, "test").run()
    assert Workload.objects.get(job__name="first").status == "Admitted"
    Workload.objects.filter(job__name="first").update(status="Pending", admitted_at=None, quota_reserved_at=None)
    open_start_gates(cluster, START)
    assert (waits(), waits("third")) == ([], ["afterany:first"])


def test_the_event_of_a_gate_names_the_conditions(cluster: Cluster) -> None:
    apply(cluster, after("a, afterany:b, after:c"), job("a"), job("b"), job("c"))
    end(cluster, "a")
    end(cluster, "b", FinishedReason.FAILED)
    end(cluster, "c")
    open_start_gates(cluster, START)
    (event,) = WorkloadEvent.objects.filter(reason="StartGateOpened")
    assert event.message == "Succeeded: a; ended: b; started: c"


def test_the_queries_of_beat_take_no_second_with_thousands_of_flows(cluster: Cluster) -> None:
    rows = [
        Job(
            cluster=cluster, namespace="team", name=f"{number}-{step}", kind="Job", manifest={}, created_at=START,
            labels={"volcano.sh/createdByJobFlow": f"team.{number}"},
            annotations={"kueueweb.io/job-retain-policy": "delete"},
        )
        for number in range(1500) for step in ("a", "b")
    ]  # fmt: skip
    Job.objects.bulk_create(rows)
    Workload.objects.bulk_create(
        Workload(
            cluster=cluster, namespace="team", name=row.name, job=row, queue_name="queue", created_at=START,
            waits_for=[row.name.replace("-b", "-a")] if row.name.endswith("-b") else [],
        )
        for row in rows
    )  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE queues_job, queues_workload")
        cursor.execute("SET statement_timeout = '1s'")
        try:
            for query in (met_query(), COMPLETED):
                cursor.execute(query)
                assert cursor.fetchall() == []
        finally:
            cursor.execute("RESET statement_timeout")
