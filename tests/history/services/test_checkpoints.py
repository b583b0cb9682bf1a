"""Checkpoints: when they are taken, what is in them, how long they are kept, and how they show the past."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from accounts.models import Cluster, Namespace
from foundation.advisory_locks import LockedWork, try_lock
from foundation.exceptions import InvalidRequest
from foundation.shown_past import current_past, open_past, present_rows
from gpus.models import Device, DeviceAllocation, Node
from history.models import Checkpoint
from history.services.checkpoints import checkpoint_tables, checkpoint_taking, past_rows
from history.services.checkpoints.checkpoint_taking import agree, take_checkpoint, take_due_checkpoints
from history.services.checkpoints.checkpoint_thinning import thin_checkpoints
from history.services.checkpoints.past_rows import (
    NoCheckpoint,
    TooManyPastReads,
    cluster_then,
    devices_of,
    find_checkpoint,
    showing_rows,
)
from queues.models import ClusterQueue, Job, PodSet, Workload
from queues.services.workloads import record_finished
from scheduler.api.queue_status import numbers_of_rows
from scheduler.leader.engine import Engine
from scheduler.models import Decision, Lease
from tests.engines import NOW, in_another_session
from tests.factories import make_cluster, make_cluster_queue, make_node, make_workload

pytestmark = pytest.mark.django_db(transaction=True)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def cluster() -> Cluster:
    """10 cpu; `a` holds one, `large` waits."""
    cluster = make_cluster()
    make_cluster_queue(cluster)
    make_node(cluster, "n1", [{}])
    make_workload(cluster, "a")
    make_workload(cluster, "large", {"cpu": "11"})
    Engine(cluster, "test", clock=lambda: NOW).run()
    return cluster


def taken_at(cluster: Cluster, moment: datetime) -> Checkpoint:
    found = take_checkpoint(cluster)
    Checkpoint.objects.filter(pk=found.pk).update(taken_at=moment)
    found.refresh_from_db()
    return found


def take_all_due() -> int:
    return take_due_checkpoints(15)


class TestTaking:
    def test_it_says_on_which_decisions_it_rests(self, cluster: Cluster) -> None:
        found = take_checkpoint(cluster)
        newest = Decision.objects.order_by("-id").values_list("id", flat=True).first()
        assert (found.decision, found.epoch, found.workloads) == (newest, Lease.objects.get().epoch, 2)
        assert found.size_bytes == len(bytes(found.content))

    def test_its_moment_has_whole_milliseconds(self, cluster: Cluster) -> None:
        assert take_checkpoint(cluster).taken_at.microsecond % 1000 == 0

    def test_the_leaders_figures_are_kept_if_they_agree_with_the_rows(self, cluster: Cluster) -> None:
        figures = take_checkpoint(cluster).figures
        assert figures["source"] == "live"
        queue = figures["cluster_queues"]["main"]
        assert (queue["pending"], queue["inadmissible"], queue["reserving"]) == (0, 1, 1)

    def test_the_rows_figures_are_kept_if_a_batch_lies_between(self, cluster: Cluster) -> None:
        record_finished(cluster, [("team", "a")])  # the leader has not seen it
        figures = take_checkpoint(cluster).figures
        assert (figures["source"], figures["cluster_queues"]["main"]["reserving"]) == ("rows", 0)

    def test_only_the_split_of_waiting_workloads_is_the_leaders(self, cluster: Cluster) -> None:
        """A batch between them may leave every count as it was."""
        Device.objects.update(healthy=False)
        Node.objects.update(cordoned=True)
        ClusterQueue.objects.update(stop_policy="Hold")
        found = take_checkpoint(cluster)
        queue, device = found.figures["cluster_queues"]["main"], found.devices["n1-0"]
        assert (found.figures["source"], queue["active"], device["health"]) == ("live", False, False)
        assert device["node_unschedulable"]
        assert (queue["pending"], queue["inadmissible"]) == (0, 1)
        totals = found.figures["totals"]
        assert (totals["pending"], totals["inadmissible"]) == (0, 1)

    @pytest.mark.parametrize("part", ["reserving", "admitted", "pending", "cohort"])
    def test_each_count_is_compared(self, cluster: Cluster, part: str) -> None:
        queues = numbers_of_rows([cluster])[cluster.pk].cluster_queues
        other = {**queues["main"], part: "other" if part == "cohort" else 7}
        assert agree(queues, queues)
        assert not agree({"main": other}, queues)

    def test_the_usage_of_quota_is_compared(self, cluster: Cluster) -> None:
        queues = numbers_of_rows([cluster])[cluster.pk].cluster_queues
        [cell] = queues["main"]["usage"]
        other = {**queues["main"], "usage": [{**cell, "used": 7}]}
        assert not agree({"main": other}, queues)

    def test_the_leader_is_not_held_up(self, cluster: Cluster) -> None:
        """No lock of a row: a batch commits while a checkpoint is read."""
        with transaction.atomic():
            take_checkpoint(cluster)
            in_another_session(lambda: Workload.objects.update(priority=5))
        assert set(Workload.objects.values_list("priority", flat=True)) == {5}


class TestWhenItIsDue:
    def test_a_cluster_has_one_for_each_interval(self, cluster: Cluster) -> None:
        assert [take_all_due(), take_all_due()] == [1, 0]
        Checkpoint.objects.update(taken_at=timezone.now() - timedelta(minutes=15, seconds=1))
        assert [take_all_due(), take_all_due()] == [1, 0]

    def test_a_new_leader_has_one(self, cluster: Cluster) -> None:
        take_all_due()
        Engine(cluster, "next", clock=lambda: NOW)
        Checkpoint.objects.update(taken_at=timezone.now() - timedelta(seconds=61))
        assert [take_all_due(), take_all_due()] == [1, 0]

    def test_leaders_that_fail_again_and_again_have_one_a_minute(self, cluster: Cluster) -> None:
        take_all_due()
        for name in ("next", "third"):
            Engine(cluster, name, clock=lambda: NOW)
            assert take_all_due() == 0

    def test_one_of_the_future_does_not_count(self, cluster: Cluster) -> None:
        taken_at(cluster, timezone.now() + timedelta(days=1))
        assert [take_all_due(), take_all_due()] == [1, 0]

    def test_each_cluster_has_its_own(self, cluster: Cluster) -> None:
        make_cluster("west")
        assert take_all_due() == 2

    def test_two_workers_do_not_take_the_same(self, cluster: Cluster) -> None:
        taken: list[int] = []
        with try_lock(LockedWork.CHECKPOINTS, cluster.pk) as mine:
            assert mine
            in_another_session(lambda: taken.append(take_all_due()))
        assert taken == [0]


class TestBrokenRows:
    def test_rows_without_a_world_are_kept_without_figures(self, cluster: Cluster) -> None:
        Cluster.objects.update(configuration={"fairSharing": 7})
        west = make_cluster("west")
        assert take_all_due() == 2
        assert Checkpoint.objects.get(cluster=west).figures["source"] == "rows"
        found = Checkpoint.objects.get(cluster=cluster)
        assert (found.figures["source"], found.figures["cluster_queues"], found.devices) == ("none", {}, {})
        with showing_rows(found):
            assert Workload.objects.count() == 2

    def test_a_cluster_that_fails_does_not_hold_up_the_others_and_is_left_alone(
        self, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tried: list[int] = []
        real = checkpoint_tables.read_tables

        def fails(cluster_id: int, now: datetime) -> bytes:
            tried.append(cluster_id)
            if cluster_id == cluster.pk:
                raise ZeroDivisionError
            return real(cluster_id, now)

        monkeypatch.setattr(checkpoint_taking, "read_tables", fails)
        west = make_cluster("west")
        assert [take_all_due(), take_all_due()] == [1, 0]
        assert tried == [cluster.pk, west.pk]
        monkeypatch.setattr(checkpoint_taking, "_PAUSE_SECONDS", 0.0)
        assert take_all_due() == 0
        assert tried == [cluster.pk, west.pk, cluster.pk]

    def test_more_rows_than_a_checkpoint_may_have_are_not_kept(
        self, cluster: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        """A checkpoint that is written can be read."""
        size = len(zlib.decompress(bytes(take_checkpoint(cluster).content)))
        for most, taken in ((size, 1), (size - 1, 0), (size // 2, 0)):
            Checkpoint.objects.all().delete()
            checkpoint_taking._failed_at.clear()
            monkeypatch.setattr(checkpoint_tables, "MOST_BYTES", most)
            assert take_all_due() == taken
            assert Checkpoint.objects.count() == taken
            if taken:
                with showing_rows(Checkpoint.objects.get()):
                    assert Workload.objects.count() == 2
        assert "cluster default: no checkpoint: its rows have more than" in caplog.text


def damaged(found: Checkpoint, content: bytes) -> None:
    Checkpoint.objects.filter(pk=found.pk).update(content=content)


def without_line(content: bytes) -> bytes:
    return zlib.compress(zlib.decompress(content).partition(b"\n")[2])


class TestMissingRows:
    def test_a_reference_to_a_row_that_is_not_kept_is_empty(self, cluster: Cluster) -> None:
        """A checkpoint has the jobs of its workloads: not the group of such a job, which has no workload itself."""
        group, member = (
            Job.objects.create(
                cluster=cluster,
                namespace="team",
                name=name,
                kind="Pod",
                manifest={},
                created_at=timezone.now(),
                uid=uuid4(),
            )
            for name in ("group", "member")
        )
        Job.objects.filter(pk=member.pk).update(group=group)
        Workload.objects.filter(name="a").update(job=member)
        with showing_rows(take_checkpoint(cluster)):
            kept = Job.objects.get()
            assert (kept.name, kept.group_id, kept.group) == ("member", None, None)
            assert Workload.objects.get(name="a").job == kept
            assert Workload.objects.get(name="large").job_id is None


class TestDamage:
    @pytest.mark.parametrize(
        "damage",
        [
            lambda content: b"",
            lambda content: content[:-20],
            lambda content: b"nothing",
            without_line,
            lambda content: zlib.compress(b'[{"table": "queues_workload"}]\n'),
            lambda content: zlib.compress(zlib.decompress(content)[:-20]),
            lambda content: zlib.compress(zlib.decompress(content).replace(b"\t", b" ")),
        ],
        ids=["empty", "cut", "not compressed", "no first line", "no columns", "rows cut", "no rows of COPY"],
    )
    def test_damaged_content_is_no_checkpoint(self, damage: Callable[[bytes], bytes], cluster: Cluster) -> None:
        found = take_checkpoint(cluster)
        damaged(found, damage(bytes(found.content)))
        with pytest.raises(NoCheckpoint, match=r"is damaged .* name a moment before it"), showing_rows(found):
            pass
        assert Workload.objects.count() == 2

    def test_content_that_is_too_large_is_not_inflated(self, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
        found = take_checkpoint(cluster)
        monkeypatch.setattr(checkpoint_tables, "MOST_BYTES", 1000)
        with pytest.raises(NoCheckpoint, match="is damaged"), showing_rows(found):
            pass

    def test_one_that_is_deleted_meanwhile(self, cluster: Cluster) -> None:
        take_checkpoint(cluster)
        found = find_checkpoint(cluster, timezone.now())
        Checkpoint.objects.all().delete()
        with pytest.raises(NoCheckpoint, match="has just been deleted: send the request again"), showing_rows(found):
            pass
        with pytest.raises(NoCheckpoint, match="has just been deleted"):
            devices_of(found)


class TestReadersAtOnce:
    def test_there_is_a_most_in_the_installation(self, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(past_rows, "READERS", 1)
        found = take_checkpoint(cluster)
        refused: list[str] = []

        def read() -> None:
            try:
                with showing_rows(found):
                    refused.append("")
            except TooManyPastReads as error:
                refused.append(error.message)

        with showing_rows(found):
            in_another_session(read)
        in_another_session(read)
        assert refused == ["1 requests already read the past, the maximum at a time. Try again in a few seconds.", ""]


class TestThinning:
    def test_two_days_are_whole_then_the_first_of_each_hour_stays_for_the_retention(self, cluster: Cluster) -> None:
        now = timezone.now().replace(minute=30, second=0, microsecond=0)
        hour = now.replace(minute=0)
        kept = [hour - timedelta(days=1, minutes=part) for part in (0, 15, 30)]
        old = [hour - timedelta(days=5) + timedelta(minutes=part) for part in (1, 16, 31, 46, 61)]
        ancient = [now - timedelta(days=31)]
        for moment in (*kept, *old, *ancient):
            taken_at(cluster, moment)
        assert thin_checkpoints(now) == 4
        left = set(Checkpoint.objects.values_list("taken_at", flat=True))
        assert left == {*kept, old[0], old[4]}
        assert thin_checkpoints(now + timedelta(minutes=20)) == 0

    def test_clusters_are_thinned_apart(self, cluster: Cluster) -> None:
        now = timezone.now()
        for found in (cluster, make_cluster("west")):
            taken_at(found, now - timedelta(days=5))
        assert thin_checkpoints(now) == 0


class TestShowing:
    def test_readers_see_the_rows_of_then_and_afterwards_those_of_now(self, cluster: Cluster) -> None:
        found = take_checkpoint(cluster)
        Workload.objects.filter(name="a").delete()
        make_workload(cluster, "later")
        ClusterQueue.objects.update(stop_policy="Hold")
        with showing_rows(found):
            assert set(Workload.objects.values_list("name", flat=True)) == {"a", "large"}
            assert {row.workload.name for row in PodSet.objects.select_related("workload")} == {"a", "large"}
            assert ClusterQueue.objects.get().stop_policy == "None"
            assert Device.objects.get().node.name == "n1"
        assert set(Workload.objects.values_list("name", flat=True)) == {"large", "later"}
        assert ClusterQueue.objects.get().stop_policy == "Hold"

    def test_the_rows_of_another_cluster_are_not_in_it(self, cluster: Cluster) -> None:
        make_workload(make_cluster("west"), "elsewhere")
        with showing_rows(take_checkpoint(cluster)):
            assert set(Workload.objects.values_list("name", flat=True)) == {"a", "large"}

    def test_nothing_can_be_written_meanwhile(self, cluster: Cluster) -> None:
        found = take_checkpoint(cluster)
        for table in ("accounts_cluster", "public.queues_workload"):
            with pytest.raises(DatabaseError, match="read-only"), showing_rows(found), connection.cursor() as cursor:
                cursor.execute(f"DELETE FROM {table}")
        assert Workload.objects.count() == 2

    def test_an_error_ends_it_too(self, cluster: Cluster) -> None:
        found = take_checkpoint(cluster)
        with pytest.raises(ZeroDivisionError), showing_rows(found):
            raise ZeroDivisionError
        make_workload(cluster, "later")
        assert Workload.objects.count() == 3

    def test_workloads_that_ended_in_the_last_hour_are_in_it(self, cluster: Cluster) -> None:
        for name, minutes in (("lately", 59), ("before", 61)):
            ended = timezone.now() - timedelta(minutes=minutes)
            make_workload(cluster, name, status="Finished", finished_at=ended)
        with showing_rows(take_checkpoint(cluster)):
            assert set(Workload.objects.values_list("name", flat=True)) == {"a", "large", "lately"}

    def test_a_column_that_is_new_gets_its_default_and_a_lost_one_is_ignored(self, cluster: Cluster) -> None:
        found = take_checkpoint(cluster)
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE queues_workload RENAME COLUMN on_hold TO earlier")
            cursor.execute("ALTER TABLE queues_workload ADD COLUMN on_hold varchar(128) NOT NULL DEFAULT 'new'")
            cursor.execute("ALTER TABLE queues_workload RENAME COLUMN traceparent TO then_traceparent")
            try:
                content = bytes(found.content)
                with showing_rows(found):
                    assert Workload.objects.defer("traceparent").count() == 2
                assert content == bytes(found.content)
            finally:
                cursor.execute("ALTER TABLE queues_workload RENAME COLUMN then_traceparent TO traceparent")
                cursor.execute("ALTER TABLE queues_workload DROP COLUMN on_hold")
                cursor.execute("ALTER TABLE queues_workload RENAME COLUMN earlier TO on_hold")

    def test_a_table_that_is_new_is_empty(self, cluster: Cluster) -> None:
        """Rows of now are not shown as those of then."""
        found = take_checkpoint(cluster)
        tables = [table for table in checkpoint_tables.tables_in(bytes(found.content)) if table.table != "gpus_device"]
        damaged(found, checkpoint_tables._written(tables))
        with showing_rows(found):
            assert not Device.objects.exists()
            assert Workload.objects.count() == 2
        assert Device.objects.exists()

    def test_a_finished_workload_whose_slice_others_hold_is_in_it(self, cluster: Cluster) -> None:
        ended = timezone.now() - timedelta(days=1)
        workload = make_workload(cluster, "ended", status="Finished", finished_at=ended)
        DeviceAllocation.objects.create(
            cluster=cluster, workload=workload, device=Device.objects.get(), node=Node.objects.get(), source="external",
            memory_mib=1, cores_percent=1, created_at=ended,
        )  # fmt: skip
        with showing_rows(take_checkpoint(cluster)):
            assert DeviceAllocation.objects.get().workload == workload

    def test_the_settings_of_the_cluster_are_those_of_then(self, cluster: Cluster) -> None:
        found = take_checkpoint(cluster)
        Cluster.objects.update(configuration={"fairSharing": {"enable": True}})
        assert cluster_then(found).configuration == {}
        assert Cluster.objects.get().configuration != {}


class TestMoments:
    def test_a_moment_has_the_last_checkpoint_before_it(self, cluster: Cluster) -> None:
        now = timezone.now()
        first, second = (taken_at(cluster, now - timedelta(minutes=minutes)) for minutes in (30, 15))
        assert find_checkpoint(cluster, now) == second
        assert find_checkpoint(cluster, second.taken_at) == second
        assert find_checkpoint(cluster, second.taken_at - timedelta(microseconds=1)) == first

    def test_a_moment_before_all_of_them_names_the_earliest(self, cluster: Cluster) -> None:
        found = take_checkpoint(cluster)
        with pytest.raises(NoCheckpoint, match=f"The earliest is from {found.taken_at:%Y-%m-%dT%H:%M:%S}"):
            find_checkpoint(cluster, found.taken_at - timedelta(seconds=1))

    def test_a_cluster_without_any_says_when_one_comes(self, cluster: Cluster, settings: object) -> None:
        with pytest.raises(NoCheckpoint, match="within 15 minutes"):
            find_checkpoint(cluster, timezone.now())
        settings.CHECKPOINT_MINUTES = 0  # type: ignore[attr-defined]  # pytest-django's
        with pytest.raises(NoCheckpoint, match="CHECKPOINT_MINUTES is 0"):
            find_checkpoint(cluster, timezone.now())

    def test_the_future_is_refused(self, cluster: Cluster) -> None:
        with pytest.raises(InvalidRequest, match=r"at: Invalid value: .* must not be in the future"):
            find_checkpoint(cluster, timezone.now() + timedelta(minutes=1))

    def test_another_format_is_refused_by_name(self, cluster: Cluster) -> None:
        take_checkpoint(cluster)
        Checkpoint.objects.update(format=99)
        with pytest.raises(NoCheckpoint, match="has the format 99, which this release, with format 1, does not read"):
            find_checkpoint(cluster, timezone.now())

    def test_it_is_exact_at_the_checkpoint_only(self, cluster: Cluster) -> None:
        found = taken_at(cluster, timezone.now() - timedelta(minutes=5))
        for seconds, exact in ((0, True), (0.0009, True), (0.001, False), (60, False)):
            with open_past(cluster.pk, found.taken_at + timedelta(seconds=seconds)) as past:
                assert (past.exact, past.taken_at, current_past()) == (exact, found.taken_at, past)
        assert current_past() is None

    def test_rights_are_read_from_the_present(self, cluster: Cluster) -> None:
        take_checkpoint(cluster)
        Workload.objects.filter(name="a").delete()
        Namespace.objects.filter(cluster=cluster).delete()
        with open_past(cluster.pk, timezone.now()):
            assert not Namespace.objects.exists()
            assert Workload.objects.filter(name="a").exists()
            with present_rows():
                assert current_past() is None
                assert not Workload.objects.filter(name="a").exists()
            assert current_past() is not None
            assert Workload.objects.filter(name="a").exists()
