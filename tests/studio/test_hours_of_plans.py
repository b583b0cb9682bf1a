"""The hours ahead of a plan: over REST and on the command line, from recorded runs, with the reader's names alone."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command

from accounts.models import Cluster
from history.models import UsageRecord
from queues.models import LocalQueue
from scheduler.leader.engine import Engine
from studio.models import Question
from studio.services import looking_ahead
from studio.services.leases import take_question
from studio.services.run_histories import RunHistories
from studio.services.trials import prepare_trial
from tests.api_client import SchemaClient
from tests.factories import START, make_cluster_queue, make_namespace, make_workload
from tests.studio.test_estimate_rounds import make_record
from tests.studio_answers import answer_questions, let_a_studio_live

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("living_studio")]
QUESTIONS = "/api/v1/studio/questions/"
PLAN = "patch: [{kind: ClusterQueue, metadata: {name: main}, spec: {stopPolicy: Hold}}]"


@pytest.fixture
def filled(cluster: Cluster) -> Cluster:
    """Ten cores of `main`, of which `runs` holds all and for which `waits` waits; `apart` is another tenant's queue, of
    whose jobs no run has ended. Twenty runs of five minutes have ended in `main`."""
    make_namespace(cluster, "team")
    make_cluster_queue(cluster)
    make_cluster_queue(cluster, "apart", local_queue="")
    LocalQueue.objects.create(
        cluster=cluster, namespace="team-b", name="queue", cluster_queue_name="apart", created_at=START
    )
    make_workload(cluster, "runs", {"cpu": "10"})
    make_workload(cluster, "other", {"cpu": "10"}, namespace="team-b")
    Engine(cluster, "test").run()
    make_workload(cluster, "waits", {"cpu": "10"})
    for number in range(20):
        make_record(cluster, number)
    return Cluster.objects.get(pk=cluster.pk)


def asked(client: SchemaClient, hours: int, plan: str = PLAN) -> Mapping[str, Any]:
    let_a_studio_live()
    answer = client.post(QUESTIONS, {"kind": "what-if", "plan": plan, "hours": hours}, format="json")
    assert answer.status_code == 201, answer.content
    answer_questions()
    found: Mapping[str, Any] = client.get(f"{QUESTIONS}{answer.json()['id']}/").json()
    return found


def test_the_hours_follow_the_whole_answer(alice: SchemaClient, filled: Cluster) -> None:
    found = asked(alice, 2)
    assert (found["state"], found["hours"]) == ("Answered", 2)
    hours = found["what_if"]["hours"]
    assert (hours["unknown"], hours["hours"], hours["ended_runs"]) == ("", 2, 20)
    queues = {queue["name"]: queue for queue in hours["queues"]}
    assert sum(queues["main"]["before"]["started"]) == 1
    assert sum(queues["main"]["after"]["started"]) == 0
    assert queues["main"]["after"]["waiting"] == [1, 1]
    assert (queues["apart"]["before"], queues["apart"]["with_run_times"]) == (None, 0)
    assert hours["total"]["workloads"] == 3


def test_without_hours_none_are_looked_at(alice: SchemaClient, filled: Cluster) -> None:
    found = asked(alice, 0)
    assert (found["hours"], found["what_if"]["hours"]) == (0, None)
    assert "hours" not in Question.objects.get().inputs


def test_queues_of_other_tenants_have_no_names(bob: SchemaClient, filled: Cluster) -> None:
    make_namespace(filled, "team-a")
    LocalQueue.objects.create(
        cluster=filled, namespace="team-a", name="queue", cluster_queue_name="main", created_at=START
    )
    make_workload(filled, "mine", namespace="team-a", submitted_by="bob")
    hours = asked(bob, 1, "end: [team-a/mine]")["what_if"]["hours"]
    assert [queue["name"] for queue in hours["queues"]] == ["main"]
    assert hours["total"]["workloads"] == 4


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"kind": "what-if", "plan": PLAN, "hours": 25}, "hours"),
        ({"kind": "what-if", "plan": PLAN, "hours": -1}, "hours"),
        ({"kind": "remedies", "workload": {"namespace": "team", "name": "waits"}, "hours": 1}, "hours"),
    ],
)
def test_other_hours_are_refused(alice: SchemaClient, filled: Cluster, body: dict[str, Any], field: str) -> None:
    answer = alice.post(QUESTIONS, body, format="json")
    assert answer.status_code == 400
    assert field in str(answer.json())


def test_the_whole_answer_is_told_before_the_hours(alice: SchemaClient, filled: Cluster) -> None:
    alice.post(QUESTIONS, {"kind": "what-if", "plan": PLAN, "hours": 1}, format="json")
    question = take_question(uuid4())
    assert question is not None
    told: list[Mapping[str, Any]] = []
    answer = prepare_trial(question, RunHistories()).work(lambda: True, lambda part: told.append(dict(part)))
    assert [(part["whole"] is None, "hours" in part) for part in told] == [(True, False), (False, False)]
    assert answer["whole"] == told[-1]["whole"]


@pytest.mark.parametrize(
    ("fault", "why"), [("memory", "NoMemory"), ("error", "Error"), ("time", "BeyondReach"), ("runs", "NoRunEnded")]
)
def test_hours_that_cannot_be_looked_at_are_unknown_and_the_plan_has_its_answer(
    alice: SchemaClient, filled: Cluster, monkeypatch: pytest.MonkeyPatch, fault: str, why: str
) -> None:
    if fault in {"memory", "error"}:

        def fail(*_: Any) -> Any:
            raise MemoryError if fault == "memory" else ZeroDivisionError

        monkeypatch.setattr(looking_ahead, "hours_ahead", fail)
    elif fault == "time":
        known = looking_ahead.hours_of_plan
        monkeypatch.setattr("studio.services.trials.hours_of_plan", partial(known, seconds=0.0))
    else:
        UsageRecord.objects.all().delete()
    found = asked(alice, 2)
    assert found["state"] == "Answered"
    assert found["what_if"]["whole"]["effects"]["complete"]
    hours = found["what_if"]["hours"]
    assert (hours["unknown"], hours["hours"], hours["total"]["before"]) == (why, 0, None)


def test_the_largest_changes_are_listed_and_the_other_queues_counted(
    alice: SchemaClient, filled: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    hours = asked(alice, 2)["what_if"]["hours"]
    assert ([queue["name"] for queue in hours["queues"]], hours["further_queues"]) == (["main", "apart"], 0)
    monkeypatch.setattr("studio.api.hour_answers.MAX_SHOWN_QUEUES", 1)
    hours = asked(alice, 2)["what_if"]["hours"]
    assert ([queue["name"] for queue in hours["queues"]], hours["further_queues"]) == (["main"], 1)


def test_the_command_prints_the_hours(filled: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(PLAN)
    printed = StringIO()
    call_command("what_if", str(path), "--hours", "2", stdout=printed)
    text = printed.getvalue()
    assert "In the next 2 hours, means of 16 forward runs with run times of 20 ended runs" in text
    assert "  ClusterQueue main: 2.0 -> 1.0 ended, 0.0 -> 0.0 device hours" in text
    assert "  ClusterQueue apart: unknown, run times are known of 0 of its 1 workload\n" in text
    printed = StringIO()
    call_command("what_if", str(path), stdout=printed)
    assert "next" not in printed.getvalue()
    for hours in ("-1", "25"):
        with pytest.raises(CommandError, match=r"^--hours: Invalid value: "):
            call_command("what_if", str(path), "--hours", hours)
    monkeypatch.setattr("studio.management.commands.what_if.MAX_SHOWN_QUEUES", 1)
    printed = StringIO()
    call_command("what_if", str(path), "--hours", "2", stdout=printed)
    assert "apart" not in printed.getvalue()
    assert printed.getvalue().endswith("  and 1 further ClusterQueue without a larger change\n")
    UsageRecord.objects.all().delete()
    printed = StringIO()
    call_command("what_if", str(path), "--hours", "2", stdout=printed)
    assert "The hours ahead are unknown: NoRunEnded (0 runs have ended)." in printed.getvalue()
