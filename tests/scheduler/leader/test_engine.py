"""The engine on a real database: it decides what rows say, and what moves meanwhile never gets past it."""

from __future__ import annotations

import pytest
from django.db import connection, transaction

from accounts.models import Cluster
from queues.models import FlavorQuota, PodSet, ResourceGroup, Workload, WorkloadEvent
from queues.services.workloads import cancel, hold, record_finished, record_stopped, release
from scheduler.leader.engine import Engine
from scheduler.leader.pace import ALONE
from scheduler.models import Change, Decision, SchedulingCycle
from scheduler.store.batch import Batch
from scheduler.store.lease import LeaseLost, begin_epoch
from scheduler.store.saving import BatchRefused, save
from tests.engines import NOW, in_another_session, reasons, start, statuses
from tests.factories import START, make_cluster, make_cluster_queue, make_cohort, make_workload

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def cluster() -> Cluster:
    return make_cluster()


def circling(cluster: Cluster) -> None:
    """Three workloads that would preempt each other forever."""
    policy = {
        "within_cluster_queue": "LowerPriority", "reclaim_within_cohort": "Any",
        "borrow_within_cohort_policy": "LowerPriority", "cohort_name": "all",
    }  # fmt: skip
    cohort = make_cohort(cluster, "all")
    make_cluster_queue(cluster, "q2", {"default-flavor": {"cpu": 4000}}, local_queue="q2", **policy)
    make_cluster_queue(cluster, "q0", {"default-flavor": {"cpu": 0}}, local_queue="q0", **policy)
    group = ResourceGroup.objects.create(
        cohort=cohort, position=0, covered_resources=["cpu"], flavors=["default-flavor"]
    )
    FlavorQuota.objects.create(resource_group=group, flavor="default-flavor", resource="cpu", nominal_quota=2000)
    make_workload(cluster, "x", {"cpu": "3"}, queue_name="q0", priority=100)
    make_workload(cluster, "l", {"cpu": "4"}, queue_name="q2", priority=50)
    make_workload(cluster, "h", {"cpu": "6"}, queue_name="q2", priority=100)


class TestDeciding:
    def test_it_admits_what_fits_and_says_why_the_rest_waits(self, cluster: Cluster) -> None:
        make_cluster_queue(cluster, quotas={"default-flavor": {"cpu": 3000}})
        for name in ("one", "two", "three"):
            make_workload(cluster, name, {"cpu": "2" if name == "two" else "1"})
        make_workload(cluster, "huge", {"cpu": "4"})
        run = start(cluster).run()
        assert (run.admitted, run.refused, run.more) == (2, 0, False)
        assert statuses() == {"one": "Admitted", "two": "Admitted", "three": "Pending", "huge": "Pending"}
        assert reasons() == {
            "one": "Admitted", "two": "Admitted", "three": "WaitingForQuota", "huge": "ExceedsMaxQuota"
        }  # fmt: skip
        two = Workload.objects.get(name="two")
        assert (two.cluster_queue_name, two.admitted_at.timestamp() if two.admitted_at else None) == ("main", NOW)
        pod_set = PodSet.objects.get(workload=two)
        assert (pod_set.admitted_count, pod_set.flavors, pod_set.resource_usage) == (
            1, {"cpu": "default-flavor"}, {"cpu": 2000}
        )  # fmt: skip
        assert {condition["type"]: condition["status"] for condition in two.conditions} == {
            "QuotaReserved": "True", "Admitted": "True"
        }  # fmt: skip

    def test_it_logs_events_decisions_and_cycles_and_clears_the_notes(self, cluster: Cluster) -> None:
        make_cluster_queue(cluster)
        make_workload(cluster, "one")
        start(cluster).run()
        assert list(WorkloadEvent.objects.values_list("reason", "actor")) == [
            ("QuotaReserved", "scheduler"), ("Admitted", "scheduler")
        ]  # fmt: skip
        decision = Decision.objects.get()
        assert (decision.action, decision.workload_name, decision.cluster_queue_name) == ("Admit", "one", "main")
        assert decision.detail["pod_sets"] == [
            {"name": "main", "count": 1, "flavors": {"cpu": "default-flavor"}, "resource_usage": {"cpu": 1000}}
        ]
        assert SchedulingCycle.objects.get().admitted == 1
        assert not Change.objects.exists()

    def test_a_second_run_writes_nothing(self, cluster: Cluster) -> None:
        make_cluster_queue(cluster, quotas={"default-flavor": {"cpu": 1000}})
        make_workload(cluster, "one")
        make_workload(cluster, "two")
        engine = start(cluster)
        engine.run()
        before = (Decision.objects.count(), WorkloadEvent.objects.count())
        engine.run()
        assert (Decision.objects.count(), WorkloadEvent.objects.count()) == before

    def test_it_follows_what_happens(self, cluster: Cluster) -> None:
        make_cluster_queue(cluster, quotas={"default-flavor": {"cpu": 1000}})
        make_workload(cluster, "one")
        make_workload(cluster, "two")
        engine = start(cluster)
        engine.run()
        record_finished(cluster, [("team", "one")])
        engine.run()
        assert statuses() == {"one": "Finished", "two": "Admitted"}
        make_workload(cluster, "three")
        FlavorQuota.objects.update(nominal_quota=2000)
        engine.run()
        assert statuses()["three"] == "Admitted"
        Workload.objects.filter(name="two").delete()
        make_workload(cluster, "four")
        engine.run()
        assert statuses()["four"] == "Admitted"

    def test_a_new_leader_goes_on_where_the_old_one_stopped(self, cluster: Cluster) -> None:
        make_cluster_queue(cluster, quotas={"default-flavor": {"cpu": 2000}})
        make_workload(cluster, "one")
        start(cluster).run()
        make_workload(cluster, "two")
        make_workload(cluster, "three")
        start(cluster).run()
        assert statuses() == {"one": "Admitted", "two": "Admitted", "three": "Pending"}

    def test_a_held_workload_stops_and_comes_back(self, cluster: Cluster) -> None:
        make_cluster_queue(cluster)
        make_workload(cluster, "one")
        engine = start(cluster)
        engine.run()
        hold(cluster, [("team", "one")], actor="alice")
        engine.run()
        assert (statuses(), reasons()) == ({"one": "Pending"}, {"one": "Deactivated"})
        release(cluster, [("team", "one")], actor="alice")
        engine.run()
        assert statuses() == {"one": "Admitted"}

    def test_a_cancelled_workload_ends_and_frees_its_quota(self, cluster: Cluster) -> None:
        make_cluster_queue(cluster, quotas={"default-flavor": {"cpu": 1000}})
        make_workload(cluster, "one")
        make_workload(cluster, "two")
        engine = start(cluster)
        engine.run()
        cancel(cluster, [("team", "one")], actor="alice")
        engine.run()
        engine.run()
        assert statuses() == {"one": "Finished", "two": "Admitted"}
        assert reasons()["one"] == "Cancelled"


class TestMeanwhile:
    def test_transactions_that_commit_in_reverse_order(self, cluster: Cluster) -> None:
        make_cluster_queue(cluster)
        engine = start(cluster)
        with transaction.atomic():
            make_workload(cluster, "first")  # its note has the smaller id and is not visible yet
            in_another_session(lambda: make_workload(cluster, "second"))
            in_another_session(engine.run)
            in_another_session(lambda: check_statuses({"second": "Admitted"}))
        engine.run()
        assert statuses() == {"first": "Admitted", "second": "Admitted"}
        assert not Change.objects.exists()

    def test_a_transaction_that_rolls_back(self, cluster: Cluster) -> None:
        make_cluster_queue(cluster)
        engine = start(cluster)
        with transaction.atomic():
            make_workload(cluster, "never")
            transaction.set_rollback(True)
        make_workload(cluster, "one")
        assert engine.run().admitted == 1
        assert statuses() == {"one": "Admitted"}

    def test_a_quota_that_was_cut(self, cluster: Cluster) -> None:
        make_cluster_queue(cluster, quotas={"default-flavor": {"cpu": 2000}})
        make_workload(cluster, "one")
        make_workload(cluster, "two")
        engine = start(cluster, meanwhile=lambda: FlavorQuota.objects.update(nominal_quota=1000))
        run = engine.run()
        assert (run.refused, run.admitted) == (1, 1)
        assert statuses() == {"one": "Admitted", "two": "Pending"}

    def test_a_workload_that_was_cancelled(self, cluster: Cluster) -> None:
        make_cluster_queue(cluster, quotas={"default-flavor": {"cpu": 1000}})
        make_workload(cluster, "one")
        make_workload(cluster, "two")
        engine = start(cluster, meanwhile=lambda: cancel(cluster, [("team", "one")], actor="alice"))
        run = engine.run()
        assert run.refused == 1
        assert statuses() == {"one": "Finished", "two": "Admitted"}

    def test_a_cancelled_preemptor_preempts_no_workload(self, cluster: Cluster) -> None:
        make_cluster_queue(cluster, quotas={"default-flavor": {"cpu": 1000}}, within_cluster_queue="LowerPriority")
        make_workload(cluster, "victim")
        start(cluster).run()
        make_workload(cluster, "preemptor", priority=10)
        engine = start(cluster, meanwhile=lambda: cancel(cluster, [("team", "preemptor")], actor="alice"))
        run = engine.run()
        assert (run.refused, run.preempted) == (1, 0)
        assert statuses() == {"victim": "Admitted", "preemptor": "Finished"}
        assert not Decision.objects.filter(action="Preempt").exists()

    def test_a_victim_whose_end_is_noted_behind_more_than_a_batch_takes_in(self, cluster: Cluster) -> None:
        """Each refused batch read the same first notes again, and preempted what had ended long ago, forever."""
        make_cluster_queue(cluster, quotas={"default-flavor": {"cpu": 1000}}, within_cluster_queue="LowerPriority")
        make_workload(cluster, "victim")
        engine = start(cluster)
        engine.run()
        make_workload(cluster, "preemptor", priority=10)
        deleted = [
            Change(cluster_id=cluster.pk, kind="workload", object_id=-n, key=f"team/deleted-{n}", holds_quota=True)
            for n in range(1, ALONE.notes_of_a_line + 1)
        ]
        Change.objects.bulk_create(deleted)
        record_finished(cluster, [("team", "victim")])
        run = engine.run(30)
        assert (run.refused, run.admitted, run.preempted, run.more) == (1, 1, 0, False)
        assert not Change.objects.exists()

    def test_a_decision_that_the_database_rejects_is_reported_and_not_retried_forever(
        self, cluster: Cluster, caplog: pytest.LogCaptureFixture
    ) -> None:
        make_cluster_queue(cluster)
        make_workload(cluster, "one")
        against = [True]

        def save_unless(batch: Batch) -> None:
            if against[0]:
                raise BatchRefused("the database holds a rule against it", by_rule=True)
            save(batch)

        engine = Engine(cluster, "test", clock=lambda: NOW, save=save_unless)
        run = engine.run()
        assert (run.refused, run.more) == (3, False)
        assert [record.levelname for record in caplog.records if "refused" in record.message] == ["INFO"] * 2 + [
            "ERROR"
        ]
        assert engine.run().refused == 1
        against[0] = False
        assert engine.run().admitted == 1

    @pytest.mark.parametrize("rule", ["false", "1 / (length(name) - 3) > 0"])  # a rule, and a value that can't be
    def test_one_that_can_not_be_stored_is_set_aside_and_holds_up_no_other(self, cluster: Cluster, rule: str) -> None:
        make_cluster_queue(cluster, quotas={"default-flavor": {"cpu": 2000}})
        make_workload(cluster, "bad", priority=10)
        make_workload(cluster, "good")
        with connection.cursor() as cursor:
            cursor.execute(
                "ALTER TABLE queues_workload ADD CONSTRAINT nobody_of_that_name "
                f"CHECK (CASE WHEN name = 'bad' AND quota_reserved_at IS NOT NULL THEN {rule} ELSE true END)"
            )
        moment = [NOW]
        engine = Engine(cluster, "test", clock=lambda: moment[0])
        run = engine.run(run_seconds=30)
        assert (run.refused, run.admitted, run.more) == (3, 1, False)
        assert statuses() == {"bad": "Pending", "good": "Admitted"}
        assert "could not be stored" in Workload.objects.get(name="bad").message
        assert WorkloadEvent.objects.filter(workload_name="bad", reason="SetAside").count() == 1
        assert engine.run().refused == 0

        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE queues_workload DROP CONSTRAINT nobody_of_that_name")
        moment[0] += 61
        assert engine.run().admitted == 1

    def test_an_old_leader_that_was_paused_before_its_commit_writes_nothing(self, cluster: Cluster) -> None:
        make_cluster_queue(cluster)
        make_workload(cluster, "one")
        old = start(cluster, meanwhile=lambda: begin_epoch(cluster.pk, "new"))
        with pytest.raises(LeaseLost):
            old.run()
        assert statuses() == {"one": "Pending"}
        assert not Decision.objects.exists()
        assert start(cluster).run().admitted == 1


def check_statuses(wanted: dict[str, str]) -> None:
    assert statuses() == wanted


class TestPreemption:
    def test_a_victim_keeps_its_quota_until_its_pods_stopped(self, cluster: Cluster) -> None:
        make_cluster_queue(cluster, quotas={"default-flavor": {"cpu": 1000}}, within_cluster_queue="LowerPriority")
        make_workload(cluster, "victim")
        engine = start(cluster)
        engine.run()
        give_job("victim")
        make_workload(cluster, "preemptor", priority=10)
        engine.run()
        assert statuses() == {"victim": "Evicted", "preemptor": "Pending"}
        assert reasons()["preemptor"] == "WaitingForPreemptedWorkloads"
        victim = Workload.objects.get(name="victim")
        assert victim.push_sequence > victim.pushed_sequence
        engine.run()
        assert statuses()["preemptor"] == "Pending"
        record_stopped(cluster, [("team", "victim")])
        engine.run()
        assert statuses() == {"victim": "Pending", "preemptor": "Admitted"}
        assert Workload.objects.get(name="victim").eviction_counts == [
            {"reason": "Preempted", "underlyingCause": "", "count": 1}
        ]

    def test_a_victim_of_which_nothing_runs_stops_at_once(self, cluster: Cluster) -> None:
        make_cluster_queue(cluster, quotas={"default-flavor": {"cpu": 1000}}, within_cluster_queue="LowerPriority")
        make_workload(cluster, "victim")
        engine = start(cluster)
        engine.run()
        make_workload(cluster, "preemptor", priority=10)
        engine.run()
        assert statuses() == {"victim": "Pending", "preemptor": "Admitted"}

    def test_circles_end_however_short_its_batches_are(self, cluster: Cluster) -> None:
        circling(cluster)
        engine = Engine(cluster, "test", clock=lambda: NOW, batch_seconds=0.0)
        run = engine.run(run_seconds=30)
        assert (run.more, run.preempted) == (False, 31)
        assert "in a loop" in " ".join(Workload.objects.values_list("message", flat=True))

    def test_circles_rest_from_tick_to_tick_until_something_changes(self, cluster: Cluster) -> None:
        circling(cluster)
        moment = [NOW]
        engine = Engine(cluster, "test", clock=lambda: moment[0])
        assert engine.run(run_seconds=30).preempted == 31
        preempted = 0
        for _ in range(59):
            moment[0] += 1.0
            preempted += engine.run().preempted
        assert preempted == 0
        moment[0] += 1.0
        assert 0 < engine.run(run_seconds=30).preempted < 6, "the pause is over"
        assert engine.run().preempted == 0
        record_finished(cluster, [("team", "x")])
        engine.run(run_seconds=30)
        assert statuses() == {"x": "Finished", "h": "Admitted", "l": "Pending"}

    def test_each_eviction_of_a_batch_is_counted(self, cluster: Cluster) -> None:
        circling(cluster)
        run = start(cluster).run(run_seconds=30)
        counted = [count for row in Workload.objects.all() for count in row.eviction_counts]
        assert {count["reason"] for count in counted} == {"Preempted"}
        assert sum(count["count"] for count in counted) == run.preempted > 2


def give_job(name: str) -> None:
    """From here on something of the workload runs in the cluster."""
    from queues.models import Job

    workload = Workload.objects.get(name=name)
    job = Job.objects.create(
        cluster=workload.cluster, namespace="team", name=name, kind="Job", manifest={}, created_at=START
    )
    Workload.objects.filter(pk=workload.pk).update(job=job)
