"""`manage.py studio` as a process, on the test's database: questions, limits, wake-ups, and its end in a question."""

from __future__ import annotations

import resource
import time
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import orjson
import pytest
from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection, transaction

from accounts.models import Cluster
from foundation.heartbeat import Role, is_alive
from foundation.redis_client import redis_client
from queues.models import Workload
from scheduler.leader.engine import Engine
from scheduler.live.rights import user_group
from scheduler.store.kept_world import forget_world, kept_world
from scheduling.studio.remedies import find_remedies
from scheduling.studio.remedies_json import remedies_json
from studio.models import OPEN_STATES, Question, QuestionKind
from studio.services.leases import wake_studios
from tests.acceptance.processes import Processes, wait_for
from tests.factories import START, make_cluster, make_cluster_queue, make_workload
from tests.services_plugin import short_temporary_folder

pytestmark = pytest.mark.django_db(transaction=True)
NOW = START.timestamp() + 1000


class Studios(Processes):
    """Studios that try two questions at a time, with the Redis of the test."""

    def start_studio(self, name: str = "studio", **further: str) -> int:
        """Start one and wait until it works; its process number."""
        self.settings = {"STUDIO_CHILDREN": "2", "REDIS_URL": settings.REDIS_URL, **further}
        redis_client().delete("kueueweb:heartbeats")
        self.start(name, "manage.py", "studio")
        wait_for("the first sign of a studio", lambda: is_alive(Role.STUDIO))
        return self._running[name].pid


@pytest.fixture
def studios() -> Iterator[Studios]:
    with short_temporary_folder() as folder, Studios(folder) as studios:
        yield studios


@pytest.fixture
def cluster() -> Cluster:
    """Ten cores, of which `a` and `b` hold seven; `w` waits for five."""
    cluster = make_cluster()
    make_cluster_queue(cluster)
    make_workload(cluster, "a", {"cpu": "4"})
    make_workload(cluster, "b", {"cpu": "3"})
    Engine(cluster, "test", clock=lambda: NOW).run()
    make_workload(cluster, "w", {"cpu": "5"})
    return Cluster.objects.get()


@pytest.fixture
def slow_cluster(cluster: Cluster) -> Cluster:
    """A cluster where the remedies of `slow` take far longer than a test: every trial decides on hundreds of others."""
    make_cluster_queue(cluster, "busy", {"default-flavor": {"cpu": 150_000}}, local_queue="busy")
    with transaction.atomic():
        for number in range(150):
            make_workload(cluster, f"runs-{number}", {"cpu": "1"}, queue_name="busy")
    Engine(cluster, "test", clock=lambda: NOW).run()
    assert Workload.objects.filter(status="Admitted").count() > 100
    with transaction.atomic():
        for number in range(300):
            make_workload(cluster, f"waits-{number}", {"cpu": f"{1001 + number}m"}, queue_name="busy")
        make_workload(cluster, "slow", {"cpu": "150"}, queue_name="busy", priority=10)
    return Cluster.objects.get()


def ask(cluster: Cluster, name: str = "w", user: str = "asker") -> Question:
    asker, _ = User.objects.get_or_create(username=user)
    with transaction.atomic():
        question = Question.objects.create(
            cluster=cluster, user=asker, kind=QuestionKind.REMEDIES, namespace="team",
            inputs={"namespace": "team", "name": name},
        )  # fmt: skip
        wake_studios()
    return question


def is_open(question: Question) -> bool:
    return Question.objects.filter(pk=question.pk, state__in=OPEN_STATES).exists()


def ended(question: Question) -> Question:
    wait_for("the end of a question", lambda: not is_open(question))
    question.refresh_from_db()
    return question


def starts_now(question: Question) -> bool:
    answer = ended(question).answer
    assert answer is not None
    return bool(answer["starts_now"])


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def in_a_question(pid: int) -> int:
    """The child of a studio that tries a question, once there is one; its process number.

    A child that estimates starts may run beside it; it was started before the question was asked.
    """
    wait_for("a trial", lambda: Question.objects.filter(state="Running").exists())
    wait_for("a child", lambda: children_of(pid) != [])
    return children_of(pid)[-1]


def first_unused_file(pid: int) -> int:
    """The number that the next file of a process gets."""
    used = {int(path.name) for path in Path(f"/proc/{pid}/fd").iterdir()}
    return next(number for number in count() if number not in used)


def is_waiting() -> bool:
    """Whether the last statement of a studio found no further question."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle'"
            " AND query LIKE '%WITH asking AS%'"
        )
        return bool(cursor.fetchone()[0])


def is_gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


def test_the_answer_is_that_of_the_rules_on_the_same_rows(studios: Studios, cluster: Cluster) -> None:
    studios.start_studio()
    question = ended(ask(cluster))
    assert question.state == "Answered", question.message
    assert question.answer is not None
    forget_world(cluster)
    with kept_world(cluster, time.time()) as world:
        expected = remedies_json(find_remedies(world, "team/w", time.time()))
    assert question.answer == orjson.loads(orjson.dumps(expected))
    assert {each["kind"] for each in question.answer["remedies"]} == {"Less", "Quota", "OthersEnd"}
    assert question.configuration_generation == cluster.configuration_generation
    assert question.tried_at is not None


def test_each_answer_is_of_the_rows_as_they_are_then(studios: Studios, cluster: Cluster) -> None:
    studios.start_studio()
    assert starts_now(ask(cluster)) is False
    Workload.objects.filter(name="a").delete()
    assert starts_now(ask(cluster)) is True
    gone = ended(ask(cluster, "none"))
    assert (gone.state, gone.reason, gone.answer) == ("Failed", "NotFound", None)
    assert "Warning" not in studios.log("studio")


def assert_users_take_turns(started: list[Question]) -> None:
    """Each question, in the order of their starts, is of the user with the fewest running ones, and among these of the
    one that was served longest ago."""
    for position, question in enumerate(started):
        before, waiting = started[:position], {each.user_id for each in started[position:]}

        def turn(user: int | None, before: list[Question] = before, at: Any = question.started_at) -> tuple[int, int]:
            own = [number for number, each in enumerate(before) if each.user_id == user]
            return sum(before[number].ended_at > at for number in own), max(own, default=-1)

        assert turn(question.user_id) == min(map(turn, waiting)), position


def test_fifty_questions_at_once_are_all_answered_by_two_children_at_a_time(studios: Studios, cluster: Cluster) -> None:
    questions = [ask(cluster, user=f"user-{number // 10}") for number in range(50)]
    pid = studios.start_studio()
    most = 0
    while any(map(is_open, questions[-5:])) or Question.objects.filter(state__in=OPEN_STATES).exists():
        most = max(most, len(children_of(pid)))
    assert 1 <= most <= 3, "two of questions, and one of estimates"
    assert Counter(Question.objects.values_list("state", flat=True)) == {"Answered": 50}
    assert len({orjson.dumps(each.answer) for each in Question.objects.all()}) == 1
    assert set(Question.objects.values_list("attempts", flat=True)) == {1}
    wait_for("the end of all children", lambda: children_of(pid) == [])
    assert_users_take_turns(list(Question.objects.order_by("started_at")))
    assert studios.terminate("studio") == 0


def test_a_child_at_its_time_limit_tells_what_it_found(studios: Studios, slow_cluster: Cluster) -> None:
    studios.start_studio(STUDIO_SECONDS="1")
    question = ended(ask(slow_cluster, "slow"))
    assert question.answer is not None, question.message
    assert question.answer["complete"] is False


def test_a_child_has_no_connection_of_the_studio(studios: Studios, slow_cluster: Cluster) -> None:
    pid = studios.start_studio()
    ask(slow_cluster, "slow")
    child = in_a_question(pid)
    opened = [path.readlink().name for path in Path(f"/proc/{child}/fd").iterdir()]
    assert opened
    assert not [name for name in opened if name.startswith("socket:")]


def test_a_studio_that_is_killed_in_a_question_loses_nothing_and_leaves_no_child(
    studios: Studios, slow_cluster: Cluster
) -> None:
    pid = studios.start_studio()
    question = ask(slow_cluster, "slow")
    child = in_a_question(pid)
    assert is_open(question)
    studios.kill("studio")
    wait_for("the end of the child", lambda: is_gone(child))
    assert is_open(question)
    studios.start_studio("second", STUDIO_SECONDS="1")
    found = ended(question)
    assert (found.state, found.attempts) == ("Answered", 2)


def test_a_studio_that_is_told_to_end_gives_its_question_back(studios: Studios, slow_cluster: Cluster) -> None:
    pid = studios.start_studio()
    question = ask(slow_cluster, "slow")
    child = in_a_question(pid)
    assert studios.terminate("studio") == 0
    assert is_gone(child)
    question.refresh_from_db()
    assert (question.state, question.studio, question.leased_until) == ("Pending", None, None)
    studios.start_studio("second", STUDIO_SECONDS="1")
    assert ended(question).state == "Answered"


def test_the_trial_of_a_deleted_question_ends(studios: Studios, slow_cluster: Cluster) -> None:
    pid = studios.start_studio()
    question = ask(slow_cluster, "slow")
    child = in_a_question(pid)
    question.delete()
    wait_for("the end of the child", lambda: is_gone(child))
    assert ended(ask(slow_cluster)).state == "Answered"


def test_it_continues_after_its_sessions_were_ended(studios: Studios, cluster: Cluster) -> None:
    studios.start_studio()
    ended(ask(cluster))
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        assert cursor.fetchone()[0] >= 1
    assert ended(ask(cluster)).state == "Answered"


def test_a_question_fails_when_no_process_can_be_started_and_the_studio_continues(
    studios: Studios, cluster: Cluster
) -> None:
    pid = studios.start_studio()
    assert ended(ask(cluster)).state == "Answered"
    wait_for("a studio that looks for the next question", is_waiting)
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (first_unused_file(pid) + 1, limits[1]))
    question = ask(cluster)
    wait_for("a process that cannot be started", lambda: "No process could be started" in studios.log("studio"))
    wait_for("a connection that cannot be opened", lambda: "The database failed" in studios.log("studio"))
    resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
    found = ended(question)
    assert (found.state, found.reason, found.attempts) == ("Failed", "NoProcess", 1)
    assert found.message == (
        "The studio could not start a process for the trial: Too many open files. Ask again later."
    )
    assert ended(ask(cluster)).state == "Answered"
    assert studios.terminate("studio") == 0


def test_the_end_of_a_question_is_told_to_the_live_streams_of_its_user(studios: Studios, cluster: Cluster) -> None:
    studios.start_studio()
    asker, _ = User.objects.get_or_create(username="asker")

    @async_to_sync
    async def hear() -> tuple[Question, Any]:
        from asgiref.sync import sync_to_async

        layer = get_channel_layer()
        channel = await layer.new_channel()
        await layer.group_add(user_group(asker.pk), channel)
        question = await sync_to_async(ask)(cluster)
        return question, await layer.receive(channel)

    question, message = hear()
    assert message == {
        "type": "question.ended",
        "frame": {
            "type": "question",
            "cluster": "default",
            "id": question.pk,
            "kind": "remedies",
            "state": "Answered",
        },
    }
