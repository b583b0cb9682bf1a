"""Two-phase admission: checks that say Ready, Retry or Rejected, over REST and by a URL that is asked (9)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core.cache import cache

from accounts.models import Role, RoleBinding
from queues.models import AdmissionCheck, ClusterQueue, Workload, WorkloadEvent
from queues.services.admission_checks import WEBHOOK_CONTROLLER, CheckAnswer, set_check_state
from queues.services.workloads import release
from scheduler.checks.webhook import URL, ask_pending, signature
from scheduling.model.vocabulary import AdmissionCheckStatus
from tests.acceptance.life import condition, events, key, one_at_a_time, running_pods, statuses, submit
from tests.api_client import SchemaClient
from tests.clusters.system import System
from tests.factories import START
from tests.http_receiver import Receiver, receiving
from tests.users import client_of, make_user

pytestmark = pytest.mark.django_db(transaction=True)


def make_check(system: System, *names: str, controller: str = "example.com/answers", **annotations: str) -> None:
    """Checks of all flavors of the ClusterQueue."""
    for name in names:
        AdmissionCheck.objects.create(
            cluster=system.cluster, name=name, controller_name=controller, annotations=annotations, created_at=START
        )
    ClusterQueue.objects.update(admission_checks=[{"name": name, "onFlavors": []} for name in names])


def answer(system: System, state: str, job: str = "train", check: str = "billing", **fields: Any) -> None:
    """What a check says, at the cluster's time; then everybody does their part."""
    given = CheckAnswer(AdmissionCheckStatus(state), **fields)
    workload = system.workload(job)
    set_check_state(system.cluster, *key(workload), check, given, actor="billing", now=system.moment())
    system.turn()


def states(job: str = "train") -> dict[str, str]:
    return {state["name"]: state["state"] for state in Workload.objects.get(job__name=job).admission_check_states}


class TestAnswers:
    @pytest.fixture(autouse=True)
    def checked(self, system: System) -> None:
        make_check(system, "billing")
        submit(system, "train")
        system.turn()

    def test_quota_is_held_and_nothing_runs_before_the_answer(self, system: System) -> None:
        assert (system.workload().status, running_pods(system)) == ("QuotaReserved", 0)
        assert condition("Admitted") == ("False", "UnsatisfiedAdmissionChecks")
        system.turn(86_400)
        assert system.workload().status == "QuotaReserved", "no time-out"
        answer(system, "Ready")
        assert (system.workload().status, running_pods(system)) == ("Admitted", 1)

    def test_retry_gives_the_quota_back_and_asks_again_later(self, system: System) -> None:
        for attempt in (1, 2):
            answer(system, "Retry", requeue_after_seconds=600)
            waiting = system.workload()
            assert (waiting.status, condition("Evicted", waiting)) == ("Pending", ("True", "AdmissionCheck"))
            assert condition("Requeued", waiting) == ("False", "AdmissionCheck")
            assert (waiting.admission_check_states[0]["retryCount"], states()) == (attempt, {"billing": "Pending"})
            system.turn(500)
            assert system.workload().status == "Pending"
            system.turn(200)
            system.turn()
            assert (system.workload().status, condition("Requeued")) == ("QuotaReserved", ("True", "BackoffFinished"))
        answer(system, "Ready")
        assert system.workload().status == "Admitted"

    def test_rejected_deactivates_and_a_release_asks_anew(self, system: System) -> None:
        answer(system, "Rejected", message="no money")
        row = system.workload()
        assert (row.status, row.reason, row.active) == ("Pending", "Deactivated", False)
        assert condition("Evicted", row) == ("True", "DeactivatedDueToAdmissionCheck")
        rejection = WorkloadEvent.objects.get(reason="AdmissionCheckRejected")
        assert (rejection.type, rejection.actor) == ("Warning", "scheduler")
        said = 'Deactivated due to AdmissionCheck in Rejected state: "billing" (no money)'
        assert rejection.message == said
        release(system.cluster, [key(row)], actor="alice")
        system.turn()
        assert (system.workload().status, states()) == ("QuotaReserved", {"billing": "Pending"})
        assert condition("Requeued") == ("True", "Reactivated")

    def test_a_check_that_changes_its_mind_stops_what_runs(self, system: System) -> None:
        answer(system, "Ready")
        assert running_pods(system) == 1
        answer(system, "Retry", requeue_after_seconds=60)
        system.turn(5)
        assert (system.workload().status, running_pods(system)) == ("Pending", 0)
        answered = [event for event in events() if event == "AdmissionCheckUpdated"]
        assert len(answered) == 2


def test_every_check_must_be_ready_and_one_rejection_outweighs_a_retry(system: System) -> None:
    make_check(system, "billing", "security")
    submit(system, "train")
    system.turn()
    answer(system, "Ready")
    assert (system.workload().status, states()) == ("QuotaReserved", {"billing": "Ready", "security": "Pending"})
    for check, state in (("billing", "Retry"), ("security", "Rejected")):
        given = CheckAnswer(AdmissionCheckStatus(state))
        set_check_state(system.cluster, *key(system.workload()), check, given, actor=check, now=system.moment())
    system.turn()
    assert condition("Evicted") == ("True", "DeactivatedDueToAdmissionCheck")


def test_a_workload_evicted_by_a_check_queues_by_the_eviction_time(system: System) -> None:  # T62
    make_check(system, "billing")
    one_at_a_time()
    submit(system, "first")
    submit(system, "second")
    system.turn()
    assert statuses() == {"first": "QuotaReserved", "second": "Pending"}
    answer(system, "Retry", "first", requeue_after_seconds=0)
    assert statuses() == {"first": "Pending", "second": "QuotaReserved"}


class TestWebhook:
    @pytest.fixture
    def receiver(self) -> Iterator[Receiver]:
        cache.clear()
        with receiving() as found:
            yield found

    @pytest.fixture(autouse=True)
    def checked(self, system: System, receiver: Receiver) -> None:
        make_check(system, "billing", controller=WEBHOOK_CONTROLLER, **{URL: receiver.url})
        submit(system, "train")
        system.turn()

    def ask(self, system: System) -> int:
        answered = ask_pending(system.cluster, system.now())
        system.turn()
        return answered

    def test_a_url_decides_and_its_word_is_signed_for(self, system: System, receiver: Receiver) -> None:
        assert self.ask(system) == 1
        assert (system.workload().status, running_pods(system)) == ("Admitted", 1)
        [(headers, body)] = receiver.asked
        assert headers["X-Kueueweb-Signature"] == f"sha256={signature(headers['X-Kueueweb-Timestamp'], body)}"
        assert json.loads(body)["workload"]["name"] == system.workload().name

    def test_it_may_send_back_and_refuse(self, system: System, receiver: Receiver) -> None:
        receiver.answer = {"state": "Retry", "requeue_after_seconds": 60, "message": "not now"}
        assert self.ask(system) == 1
        assert (system.workload().status, condition("Evicted")) == ("Pending", ("True", "AdmissionCheck"))
        receiver.answer = {"state": "Rejected", "message": "never"}
        system.turn(60)
        system.turn()
        assert system.workload().status == "QuotaReserved"
        assert self.ask(system) == 1
        assert condition("Evicted") == ("True", "DeactivatedDueToAdmissionCheck")

    def test_nothing_starts_while_it_gives_no_answer_and_it_is_asked_again(
        self, system: System, receiver: Receiver
    ) -> None:
        receiver.status = 503
        assert self.ask(system) == 0
        assert (system.workload().status, running_pods(system)) == ("QuotaReserved", 0)
        [state] = system.workload().admission_check_states
        assert (state["state"], "503" in state["message"]) == ("Pending", True)
        receiver.status = 200
        system.advance(600)
        assert self.ask(system) == 1
        assert system.workload().status == "Admitted"
        assert len(receiver.asked) == 2


class TestRest:
    @pytest.fixture(autouse=True)
    def checked(self, system: System) -> None:
        make_check(system, "billing")
        submit(system, "train")
        system.turn()

    def put(self, system: System, client: SchemaClient, **body: Any) -> int:
        namespace, name = key(system.workload())
        address = f"/api/v1/workloads/{namespace}/{name}/admission-checks/billing/"
        status = client.put(address, body, format="json").status_code
        system.turn()
        return int(status)

    def with_the_right(self) -> SchemaClient:
        """The account of a billing system: it sees all and may answer checks."""
        user = make_user("billing-system")
        RoleBinding.objects.create(username=user.username, role=Role.VIEWER, namespace="")
        user.user_permissions.add(Permission.objects.get(codename="answer_admissioncheck"))
        return client_of(User.objects.get(pk=user.pk))

    def test_an_account_with_the_right_lets_it_start(self, system: System) -> None:
        assert self.put(system, self.with_the_right(), state="Ready", message="paid") == 200
        assert (system.workload().status, running_pods(system)) == ("Admitted", 1)
        event = WorkloadEvent.objects.get(reason="AdmissionCheckUpdated")
        assert (event.actor, event.message) == ("billing-system", "billing is Ready: paid")

    def test_an_account_with_the_right_stops_it(self, system: System) -> None:
        assert self.put(system, self.with_the_right(), state="Rejected", message="no money") == 200
        assert condition("Evicted") == ("True", "DeactivatedDueToAdmissionCheck")

    def test_others_may_not(self, system: System) -> None:
        owner = make_user("owner")
        RoleBinding.objects.create(username=owner.username, role=Role.SUBMITTER, namespace="team")
        assert self.put(system, client_of(owner), state="Ready") == 403
        assert self.put(system, client_of(make_user("vera")), state="Ready") == 403
        assert self.put(system, client_of(make_user("charlie")), state="Ready") == 404
        assert (system.workload().status, states()) == ("QuotaReserved", {"billing": "Pending"})
