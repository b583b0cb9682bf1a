"""Every operation that writes: tried as another tenant, and twice at once. A new one fails here until it is listed."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import orjson
import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Model
from knox.models import AuthToken

from accounts.models import Cluster, ManifestTemplate, Namespace, Role, RoleBinding, SavedView
from accounts.services.service_accounts import create_service_account
from accounts.services.tokens import create_token
from notifications.models import NotificationRule
from queues.models import FlavorQuota, PodSet, ResourceGroup, Workload, WorkloadPriorityClass
from queues.services.workloads import hold
from studio.models import Question
from tests.api_client import SchemaClient, schema
from tests.factories import make_cluster_queue, make_cohort, make_node, make_resource_flavor
from tests.patience import PATIENCE_SECONDS
from tests.studio_answers import let_a_studio_live
from tests.users import EPOCH, client_of, make_user

pytestmark = pytest.mark.django_db(transaction=True)

Body = Callable[[], Any]
WRITES: Final = ("post", "put", "patch", "delete")
KEYS: Final = {"workloads": [{"namespace": "team-a", "name": "one"}]}
CELL: Final = {"resources": {"cpu": {"nominal_quota": "9"}}}
JOB: Final = """
apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: team-a, labels: {kueue.x-k8s.io/queue-name: local}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}
"""


@dataclass(frozen=True, slots=True)
class Write:
    """An operation on what is bob's, or an admin's. `alone`: what it answers to who may, if not 200."""

    body: Any = None
    content_type: str = "application/json"
    refused: tuple[int, ...] = (403, 404)
    right: frozenset[int] = frozenset({200})
    again: frozenset[int] = frozenset()
    """What the one who comes second may be told instead."""
    own: bool = False
    """It concerns who asks alone: nobody is refused it."""
    before: str = ""
    """What is so before."""


def codes(*statuses: int) -> frozenset[int]:
    return frozenset(statuses)


RESERVATION: Final = {
    "starts_at": "2027-01-05T08:00:00Z",
    "ends_at": "2027-01-05T12:00:00Z",
    "nodes": {"names": ["node-1"]},
}
BODIES: Final = {
    "admission-checks/{name}/": {"controller_name": "example.com/billing"},
    "limit-ranges/{namespace}/{name}/": {"limits": [{"type": "Container", "max": {"cpu": "8"}}]},
    "namespaces/{name}/": {"labels": {"a": "b"}},
    "priority-classes/{name}/": {"value": 1},
    "multikueue-clusters/{name}/": {"cluster_profile": "east"},
    "multikueue-configs/{name}/": {"clusters": ["east"]},
    "provisioning-request-configs/{name}/": {"provisioning_class_name": "check-capacity"},
    "reservations/{name}/": RESERVATION,
    "resource-quotas/{namespace}/{name}/": {"hard": {"requests.cpu": "1"}},
    "runtime-classes/{name}/": {"handler": "nvidia"},
    "topologies/{name}/": {"levels": ["rack"]},
    "workload-priority-classes/{name}/": {"value": 1},
}
"""What the kinds without a longer story are made from."""
ENDED: Final = Write(KEYS, right=codes(200), again=codes(409, 404))
OPERATIONS: Final[dict[tuple[str, str], Write]] = {
    ("post", "auth/login/"): Write({"username": "bob", "password": "bob-secret"}, own=True, right=codes(200)),
    # The codes are unknown: who asks is told the same, whoever it is.
    ("post", "auth/device/"): Write(own=True, right=codes(201)),
    ("post", "auth/device/token/"): Write({"device_code": "unknown"}, own=True, right=codes(400)),
    ("post", "auth/device/{user_code}/"): Write({"allow": True}, own=True, right=codes(404)),
    ("post", "auth/tokens/"): Write({"name": "laptop"}, own=True, right=codes(201)),
    ("post", "auth/logout/"): Write(own=True, right=codes(204)),
    ("post", "auth/token/"): Write({"username": "bob", "password": "bob-secret"}, own=True, right=codes(200, 201)),
    ("delete", "auth/tokens/"): Write(own=True, right=codes(200, 204)),
    ("delete", "auth/tokens/{token_id}/"): Write(right=codes(204), again=codes(404), refused=(404,)),
    ("patch", "clusters/{name}/"): Write({"mode": "observe"}),
    ("put", "cluster-queues/{name}/"): Write({"cohort": "other"}, right=codes(200), again=codes(409, 412)),
    ("patch", "cluster-queues/{name}/"): Write({"stop_policy": "Hold"}, again=codes(409, 412)),
    ("delete", "cluster-queues/{name}/"): Write(right=codes(200, 202, 204), again=codes(404, 409)),
    ("patch", "cluster-queues/{name}/quotas/{flavor}/"): Write(CELL, again=codes(409, 412)),
    ("patch", "cohorts/{name}/quotas/{flavor}/"): Write(CELL, again=codes(409, 412)),
    ("put", "cohorts/{name}/"): Write({"parent": "root"}, right=codes(200), again=codes(409, 412)),
    ("patch", "cohorts/{name}/"): Write({"parent": "root"}, again=codes(409, 412)),
    ("delete", "cohorts/{name}/"): Write(right=codes(200, 202, 204), again=codes(404, 409)),
    ("put", "local-queues/{namespace}/{name}/"): Write({"cluster_queue": "main"}, right=codes(200), again=codes(409)),
    ("patch", "local-queues/{namespace}/{name}/"): Write({"stop_policy": "Hold"}, again=codes(409, 412)),
    ("delete", "local-queues/{namespace}/{name}/"): Write(right=codes(200, 202, 204), again=codes(404, 409)),
    ("put", "resource-flavors/{name}/"): Write({"node_labels": {"a": "b"}}, right=codes(200), again=codes(409, 412)),
    ("patch", "resource-flavors/{name}/"): Write({"node_labels": {"a": "b"}}, again=codes(409, 412)),
    ("delete", "resource-flavors/{name}/"): Write(right=codes(200, 202, 204), again=codes(404, 409)),
    ("put", "role-bindings/{name}/"): Write({"user": "eve", "role": "admin"}, right=codes(200), again=codes(409, 412)),
    ("patch", "role-bindings/{name}/"): Write({"role": "admin"}, again=codes(409, 412)),
    ("delete", "role-bindings/{name}/"): Write(right=codes(200, 202, 204), again=codes(404, 409)),
    # It stores nothing: asked again, it says the same.
    ("post", "reservation-calendar/preview/"): Write({**RESERVATION, "name": "made"}, right=codes(200)),
    ("post", "notifications/read/"): Write({}, own=True, right=codes(204)),
    ("post", "notification-rules/"): Write({"event": "WorkloadStarted"}, own=True, right=codes(201)),
    ("patch", "notification-rules/{rule_id}/"): Write({"enabled": False}, refused=(404,)),
    ("delete", "notification-rules/{rule_id}/"): Write(right=codes(204), again=codes(404), refused=(404,)),
    ("post", "notification-rules/{rule_id}/test/"): Write(right=codes(202), refused=(404,)),
    ("post", "studio/questions/"): Write(
        {"kind": "remedies", "workload": {"namespace": "team-a", "name": "one"}}, before="a studio", right=codes(201)
    ),
    # It is no plan, and only plans are saved.
    ("patch", "studio/questions/{question_id}/"): Write(
        {"name": "plan"}, right=codes(409), again=codes(409), refused=(404,)
    ),
    # Nor is it applied: tests/studio/test_applying.py applies a plan as another tenant, and twice at once.
    ("post", "studio/questions/{question_id}/apply/"): Write(right=codes(409), again=codes(409), refused=(404,)),
    ("delete", "studio/questions/{question_id}/"): Write(right=codes(204), again=codes(404), refused=(404,)),
    ("post", "manifest-templates/"): Write(
        {"name": "mine", "manifest": "kind: Job"}, own=True, right=codes(201), again=codes(409)
    ),
    ("patch", "manifest-templates/{template_id}/"): Write({"name": "other"}, refused=(404,)),
    ("delete", "manifest-templates/{template_id}/"): Write(right=codes(204), again=codes(404), refused=(404,)),
    ("post", "saved-views/"): Write(
        {"page": "workloads", "name": "waiting", "search": {"status": "Pending"}}, own=True, right=codes(201),
        again=codes(409),
    ),
    ("patch", "saved-views/{view_id}/"): Write({"search": {}}, refused=(404,)),
    ("delete", "saved-views/{view_id}/"): Write(right=codes(204), again=codes(404), refused=(404,)),
    ("post", "service-accounts/"): Write({"name": "robot"}, right=codes(201), again=codes(409)),
    ("delete", "service-accounts/{name}/"): Write(right=codes(204), again=codes(404)),
    ("post", "service-accounts/{name}/tokens/"): Write({"scope": "read"}, right=codes(201)),
    ("delete", "service-accounts/{name}/tokens/{token_id}/"): Write(right=codes(204), again=codes(404)),
    ("post", "users/"): Write(
        {"username": "dora", "password": "a-long-and-odd-one-7"}, right=codes(201), again=codes(409)
    ),
    ("patch", "users/{name}/"): Write({"is_active": False}),
    ("delete", "users/{name}/tokens/{token_id}/"): Write(right=codes(204), again=codes(404)),
    ("put", "prices/"): Write({"currency": "EUR", "prices": []}, again=codes(409, 412)),
    ("patch", "devices/{uuid}/"): Write({"cordoned": True}),
    ("patch", "nodes/{name}/"): Write({"cordoned": True}),
    ("post", "manifests/"): Write(JOB, "application/yaml", again=codes(409)),
    ("post", "preview/"): Write(JOB, "application/yaml", again=codes(409)),
    ("post", "workloads/"): Write(
        {"namespace": "team-a", "name": "two", "local_queue": "local", "pod_sets": [{"requests": {"cpu": "1"}}]},
        right=codes(201), again=codes(400, 409),
    ),
    ("delete", "workloads/{namespace}/{name}/"): Write(right=codes(202, 204), again=codes(404)),
    ("put", "workloads/{namespace}/{name}/admission-checks/{check}/"): Write(
        {"state": "Ready"}, before="reserved", again=codes(409)
    ),
    ("post", "workloads/{namespace}/{name}/cancel/"): Write(again=codes(409)),
    ("post", "workloads/{namespace}/{name}/hold/"): Write(again=codes(409)),
    ("post", "workloads/{namespace}/{name}/priority/"): Write({"priority_class": "usual"}),
    ("post", "workloads/{namespace}/{name}/release/"): Write(before="held", again=codes(409)),
    ("post", "workloads/{namespace}/{name}/requeue/"): Write(before="reserved", again=codes(409)),
    ("post", "workloads/cancel/"): ENDED,
    ("post", "workloads/finish/"): Write(KEYS, again=codes(409, 404)),
    ("post", "workloads/hold/"): Write(KEYS, again=codes(409)),
    ("post", "workloads/priority/"): Write(KEYS | {"priority_class": "usual"}),
    ("post", "workloads/release/"): Write(KEYS, before="held", again=codes(409)),
    ("post", "workloads/requeue/"): Write(KEYS, before="reserved", again=codes(409)),
}  # fmt: skip
for path, body in BODIES.items():
    OPERATIONS["put", path] = Write(body, before="made", again=codes(409, 412))
    OPERATIONS["patch", path] = Write({"labels": {"a": "c"}}, before="made", again=codes(409, 412))
    OPERATIONS["delete", path] = Write(before="made", right=codes(202, 204), again=codes(404, 409))
OPERATIONS["delete", "manifests/{kind}/{name}/"] = Write(right=codes(202, 204), again=codes(404, 409))
OPERATIONS["delete", "manifests/{kind}/{namespace}/{name}/"] = Write(right=codes(202, 204), again=codes(404, 409))
BY_ADMINS: Final = (
    *(path.partition("/")[0] for path in BODIES),
    "manifests/{kind}/",
    "cluster-queues",
    "clusters",
    "cohorts",
    "local-queues",
    "resource-flavors",
    "devices",
    "nodes",
    "prices",
    "reservation-calendar",
    "role-bindings",
    "service-accounts",
    "users",
)
IDS: Final = [f"{method} {path}" for method, path in OPERATIONS]


def test_every_operation_that_writes_is_tried() -> None:
    known = {
        (method, path.removeprefix("/api/v1/"))
        for path, operations in schema()["paths"].items()
        for method in operations
        if method in WRITES
    }
    assert set(OPERATIONS) == known


@pytest.fixture
def cluster() -> Cluster:
    """What bob has in team-a, what charlie has in team-b, and what all have from the admins."""
    cluster = Cluster.objects.create(name="default")
    for name in ("team-a", "team-b"):
        Namespace.objects.create(cluster=cluster, name=name, created_at=EPOCH)
    group = ResourceGroup.objects.create(
        cohort=make_cohort(cluster, "company"), position=0, covered_resources=["cpu"], flavors=["default-flavor"]
    )
    FlavorQuota.objects.create(resource_group=group, flavor="default-flavor", resource="cpu", nominal_quota=1000)
    make_cluster_queue(cluster, local_queue="", cohort_name="company")
    make_resource_flavor(cluster, "spare")
    make_node(cluster, "node-1", [{"uuid": "GPU-1"}])
    local = apps.get_model("queues", "LocalQueue")
    local.objects.create(cluster=cluster, namespace="team-a", name="local", cluster_queue_name="main", created_at=EPOCH)
    WorkloadPriorityClass.objects.create(cluster=cluster, name="usual", value=10, created_at=EPOCH)
    state = {"name": "billing", "state": "Pending", "message": "", "lastTransitionTime": "2026-01-05T09:00:00Z"}
    row = Workload.objects.create(
        cluster=cluster, namespace="team-a", name="one", created_at=EPOCH, queue_name="local",
        admission_check_states=[state],
    )  # fmt: skip
    PodSet.objects.create(workload=row, template={}, requests={})
    for name in ("alice", "bob", "charlie"):
        make_user(name)
    RoleBinding.objects.filter(username="charlie").update(role=Role.ADMIN)
    RoleBinding.objects.create(cluster=cluster, name="of-the-test", username="eve", role=Role.VIEWER)
    create_service_account("machine")
    return cluster


def _holder(path: str) -> str:
    """Whose token an address with a {token_id} speaks of."""
    return "machine" if path.startswith("service-accounts") else "bob"


def url_of(path: str) -> str:
    """The address of what bob has."""
    token = AuthToken.objects.filter(user__username=_holder(path)).first()
    names = {
        "cluster-queues": "main", "clusters": "default", "cohorts": "company", "local-queues": "local",
        "resource-flavors": "spare", "nodes": "node-1", "workloads": "one", "role-bindings": "of-the-test",
        "service-accounts": "machine", "users": "bob",
    }  # fmt: skip
    if path.startswith("manifests/{kind}"):
        names["manifests"], kind = ("local", "localqueue") if "{namespace}" in path else ("spare", "resourceflavor")
        path = path.replace("{kind}", kind)
    filled = path.replace("{name}", names.get(path.partition("/")[0], "made")).replace("{namespace}", "team-a")
    filled = filled.replace("{uuid}", "GPU-1").replace("{check}", "billing").replace("{flavor}", "default-flavor")
    filled = filled.replace("{user_code}", "X")
    rule = NotificationRule.objects.filter(user__username="bob").first()
    filled = filled.replace("{rule_id}", str(rule.pk if rule else ""))
    view = SavedView.objects.filter(user__username="bob").first()
    filled = filled.replace("{view_id}", str(view.pk if view else ""))
    template = ManifestTemplate.objects.filter(user__username="bob").first()
    filled = filled.replace("{template_id}", str(template.pk if template else ""))
    question = Question.objects.filter(user__username="bob").first()
    filled = filled.replace("{question_id}", str(question.pk if question else ""))
    return f"/api/v1/{filled.replace('{token_id}', str(token.details.pk if token else ''))}"


def prepare(cluster: Cluster, path: str, write: Write) -> None:
    if "{token_id}" in path:
        create_token(User.objects.get(username=_holder(path)), "laptop")
    if "{rule_id}" in path:
        bob = User.objects.get(username="bob")
        NotificationRule.objects.create(user=bob, cluster=cluster, event="WorkloadStarted", created_at=EPOCH)
    if "{template_id}" in path:
        ManifestTemplate.objects.create(user=User.objects.get(username="bob"), name="saved", manifest="kind: Job")
    if "{view_id}" in path:
        SavedView.objects.create(user=User.objects.get(username="bob"), page="workloads", name="mine", search={})
    if write.before == "made":
        made = client_of(User.objects.get(username="alice")).put(url_of(path), BODIES[path], format="json")
        assert made.status_code == 201, made.content
    if "{question_id}" in path:
        Question.objects.create(
            user=User.objects.get(username="bob"), cluster=cluster, kind="remedies", namespace="team-a",
            inputs={"namespace": "team-a", "name": "one"},
        )  # fmt: skip
    if write.before == "a studio":
        let_a_studio_live()
    if write.before == "held":
        hold(cluster, [("team-a", "one")], actor="bob")
    if write.before == "reserved":
        Workload.objects.update(status="QuotaReserved", quota_reserved_at=EPOCH)


def send(client: SchemaClient, method: str, url: str, write: Write) -> Any:
    text = write.body if isinstance(write.body, str) else orjson.dumps(write.body).decode()
    body = "" if write.body is None else text
    any_state = {"If-Match": "*"} if method == "put" else {}
    return client.generic(method.upper(), url, body, write.content_type, headers=any_state)


def rows() -> dict[str, list[dict[str, Any]]]:
    """Everything that is stored, but for sessions and the audit, which tells of refused attempts too."""
    models: list[type[Model]] = [
        model
        for model in apps.get_models()
        if model._meta.app_label in {"accounts", "queues", "gpus", "notifications", "studio", "knox"}
        and model._meta.model_name != "auditrecord"
    ]
    return {model._meta.label: list(model._default_manager.order_by("pk").values()) for model in models}


@pytest.mark.parametrize(("method", "path"), OPERATIONS, ids=IDS)
def test_as_another_tenant(cluster: Cluster, method: str, path: str) -> None:
    write = OPERATIONS[method, path]
    if write.own:
        return
    prepare(cluster, path, write)
    before = rows()
    for client in (client_of(User.objects.get(username="charlie")), SchemaClient()):
        answer = send(client, method, url_of(path), write)
        expected = write.refused if client.handler._force_user else (401,)  # type: ignore[attr-defined]
        assert answer.status_code in expected, answer.content
    assert rows() == before


@pytest.mark.parametrize(("method", "path"), OPERATIONS, ids=IDS)
def test_twice_at_once(cluster: Cluster, method: str, path: str) -> None:
    """One of two does it; the other is told so, or that it is done."""
    write = OPERATIONS[method, path]
    prepare(cluster, path, write)
    by_admin = path.startswith(BY_ADMINS) or "{check}" in path
    user = User.objects.get(username="alice" if by_admin else "bob")
    url, together = url_of(path), threading.Barrier(2)
    answers: list[Any] = []
    schema()  # the clients check answers by it: two threads must not make it at once

    def ask() -> None:
        client = client_of(user)
        together.wait(PATIENCE_SECONDS)
        try:
            answers.append(send(client, method, url, write))
        finally:
            connection.close()

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = Counter(answer.status_code for answer in answers)
    assert found.total() == 2
    assert set(found) & write.right, [answer.content for answer in answers]
    assert set(found) <= write.right | write.again, [answer.content for answer in answers]
