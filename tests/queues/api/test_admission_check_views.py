"""Answers of admission checks over REST."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User

from accounts.models import Cluster, Role, RoleBinding
from queues.models import PodSet, Workload, WorkloadEvent
from tests.api_client import SchemaClient
from tests.users import EPOCH, client_of, make_user

URL = "/api/v1/workloads/team-a/one/admission-checks/billing/"


@pytest.fixture
def workload(cluster: Cluster) -> Workload:
    state = {"name": "billing", "state": "Pending", "message": "", "lastTransitionTime": "2026-01-05T09:00:00Z"}
    row = Workload.objects.create(
        cluster=cluster, namespace="team-a", name="one", created_at=EPOCH, status="QuotaReserved",
        quota_reserved_at=EPOCH, admission_check_states=[state],
    )  # fmt: skip
    PodSet.objects.create(workload=row, template={}, requests={})
    return row


def put(client: SchemaClient, **body: Any) -> Any:
    return client.put(URL, body, format="json")


def test_a_cluster_admin_answers(alice: SchemaClient, workload: Workload) -> None:
    answer = put(alice, state="Ready", message="paid", pod_set_updates=[{"name": "main", "labels": {"paid": "yes"}}])
    assert answer.status_code == 200
    [state] = answer.json()["admission_checks"]
    assert (state["state"], state["message"]) == ("Ready", "paid")
    stored = Workload.objects.get().admission_check_states[0]
    assert stored["podSetUpdates"] == [{"name": "main", "labels": {"paid": "yes"}}]
    assert stored["lastTransitionTime"] > "2026-01-05T09:00:00Z"
    event = WorkloadEvent.objects.get()
    assert (event.reason, event.actor, event.message) == ("AdmissionCheckUpdated", "alice", "billing is Ready: paid")


@pytest.mark.parametrize(
    ("update", "path"),
    [
        ({"name": "other"}, "pod_set_updates[0].name"),
        ({"labels": {"a": "b"}}, "pod_set_updates[0].name"),
        ({"name": "main", "nodeselector": {}}, "pod_set_updates[0].nodeselector"),
        ({"name": "main", "labels": {"a": 1}}, "pod_set_updates[0].labels[a]"),
        ({"name": "main", "tolerations": [{"operator": "Equal"}]}, "pod_set_updates[0].tolerations[0].operator"),
    ],
)
def test_updates_that_can_not_be_are_refused(
    alice: SchemaClient, workload: Workload, update: dict[str, Any], path: str
) -> None:
    answer = put(alice, state="Ready", pod_set_updates=[update])
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (400, path)
    assert Workload.objects.get().admission_check_states[0]["state"] == "Pending"


def test_the_same_answer_again_changes_nothing(alice: SchemaClient, workload: Workload) -> None:
    put(alice, state="Ready", message="paid")
    put(alice, state="Ready", message="paid")
    assert WorkloadEvent.objects.count() == 1


def test_an_account_with_the_right_answers(cluster: Cluster, workload: Workload) -> None:
    user = make_user("billing-system")
    RoleBinding.objects.create(username=user.username, role=Role.VIEWER, namespace="")
    assert put(client_of(user), state="Ready").status_code == 403
    user.user_permissions.add(Permission.objects.get(codename="answer_admissioncheck"))
    assert put(client_of(User.objects.get(pk=user.pk)), state="Rejected", message="no money").status_code == 200


def test_a_submitter_may_not_pass_its_own_check(bob: SchemaClient, charlie: SchemaClient, workload: Workload) -> None:
    assert put(bob, state="Ready").status_code == 403
    assert put(charlie, state="Ready").status_code == 404
    assert Workload.objects.get().admission_check_states[0]["state"] == "Pending"


@pytest.mark.parametrize(
    ("changes", "status"),
    [({"quota_reserved_at": None}, 409), ({"evicted_at": EPOCH}, 409), ({"finished_at": EPOCH}, 409)],
)
def test_an_answer_out_of_turn_is_refused(
    alice: SchemaClient, workload: Workload, changes: dict[str, Any], status: int
) -> None:
    Workload.objects.update(**changes)
    assert put(alice, state="Ready").status_code == status


def test_an_unknown_check_or_state_is_refused(alice: SchemaClient, workload: Workload) -> None:
    assert put(alice, state="Perhaps").status_code == 400
    unknown = alice.put(URL.replace("billing", "security"), {"state": "Ready"}, format="json")
    assert (unknown.status_code, unknown.json()["reason"]) == (404, "NotFound")
