"""Every role x every operation of the REST document: who is let in, and who is not. A new operation needs an entry."""

import json
from datetime import timedelta
from typing import Any, Final

import pytest
from django.contrib.auth.models import Group, User
from django.db import transaction
from rest_framework.test import APIClient

from accounts.models import Cluster, Role, RoleBinding, TokenDetails
from accounts.services.service_accounts import create_service_account
from accounts.services.tokens import create_token
from gpus.models import Device
from queues.manifests.workload import PodSetSpec, WorkloadSpec
from queues.models import (
    AdmissionCheck,
    FlavorQuota,
    LimitRange,
    LocalQueue,
    MultiKueueCluster,
    MultiKueueConfig,
    Pod,
    PriorityClass,
    ProvisioningRequestConfig,
    Reservation,
    ResourceGroup,
    ResourceQuota,
    RuntimeClass,
    Topology,
    Workload,
    WorkloadPriorityClass,
)
from queues.services.submission import create_workloads
from tests.api_client import schema
from tests.factories import make_cluster_queue, make_cohort, make_node
from tests.studio_answers import let_a_studio_live
from tests.users import EPOCH

pytestmark = pytest.mark.django_db

# letter: (role, namespace, cohort, the cluster where it holds; "" is every cluster)
BINDINGS: Final = {
    "A": (Role.ADMIN, "", "", "default"),
    "E": (Role.ADMIN, "", "", ""),
    "N": (Role.ADMIN, "team-a", "", ""),
    "S": (Role.SUBMITTER, "team-a", "", "default"),
    "W": (Role.VIEWER, "team-a", "", ""),
    "V": (Role.VIEWER, "", "", "default"),
    "Q": (Role.QUEUE_ADMIN, "", "research", "default"),
    "U": (Role.AUDITOR, "", "", ""),
    "O": (Role.ADMIN, "", "", "west"),  # has nothing to say here
    "B": (Role.SUBMITTER, "team-b", "", "default"),  # another tenant
}
EVERYBODY = "AENSWVQUB"
TENANTS = "AENSWVU"  # who may look into team-a
SUBMITTERS = "AENS"
ADMIN = "AE"
EVERYWHERE = "E"
QUEUES = "AEQ"
AUDITORS = "AEU"
ALL_SEEING = "AEVU"
ANY_LOGIN = "login"
"""Who is logged in, with a role or without: about the user's own session and tokens."""

# operation -> (who, body)
Entry = tuple[str, Any]
_ID: Final = "00000000-0000-0000-0000-000000000000"
WORKLOAD: Final = {
    "namespace": "team-a",
    "name": "new",
    "local_queue": "local",
    "pod_sets": [{"requests": {"cpu": "1"}}],
}
QUESTION: Final = {"kind": "remedies", "workload": {"namespace": "team-a", "name": "w"}}
RESERVATION: Final = {
    "starts_at": "2027-01-05T08:00:00Z",
    "ends_at": "2027-01-05T12:00:00Z",
    "nodes": {"names": ["node"]},
}
KEYS: Final = {"workloads": [{"namespace": "team-a", "name": "w"}]}
MANIFEST: Final = """
apiVersion: batch/v1
kind: Job
metadata: {name: j, namespace: team-a, labels: {kueue.x-k8s.io/queue-name: local}}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: main, image: busybox, resources: {requests: {cpu: 1}}}]}
"""


def reads(plural: str, name: str, who: str) -> dict[str, Entry]:
    """A list, which shows each what they may see, and one object."""
    return {f"GET {plural}/": (EVERYBODY, None), f"GET {plural}/{name}/": (who, None)}


def edits(plural: str, name: str, who: str, body: Any) -> dict[str, Entry]:
    return {
        f"PUT {plural}/{name}/": (who, body),
        f"PATCH {plural}/{name}/": (who, {"labels": {"a": "b"}}),
        f"DELETE {plural}/{name}/": (who, None),
    }


RIGHTS: Final[dict[str, Entry]] = {
    **reads("admission-checks", "{name}", EVERYBODY),
    **reads("clusters", "{name}", EVERYBODY),
    **reads("cluster-queues", "{name}", TENANTS + "Q"),
    **reads("cohorts", "{name}", TENANTS + "Q"),
    **reads("devices", "{uuid}", EVERYBODY),
    "GET headroom/": (EVERYBODY, None),
    "GET job-flows/": (EVERYBODY, None),
    **reads("limit-ranges", "{namespace}/{name}", TENANTS),
    **reads("local-queues", "{namespace}/{name}", TENANTS + "Q"),
    **reads("namespaces", "{name}", TENANTS),
    **reads("nodes", "{name}", EVERYBODY),
    **reads("priority-classes", "{name}", EVERYBODY),
    **reads("resource-flavors", "{name}", EVERYBODY),
    **reads("resource-quotas", "{namespace}/{name}", TENANTS),
    **reads("multikueue-clusters", "{name}", EVERYBODY),
    **reads("multikueue-configs", "{name}", EVERYBODY),
    **reads("provisioning-request-configs", "{name}", EVERYBODY),
    "GET reservations/": (ALL_SEEING, None),
    "GET reservations/{name}/": (ALL_SEEING, None),
    "GET reservation-calendar/": (EVERYBODY, None),
    "POST reservation-calendar/preview/": (ADMIN, {**RESERVATION, "name": "new"}),
    **reads("runtime-classes", "{name}", EVERYBODY),
    **reads("topologies", "{name}", EVERYBODY),
    **reads("workload-priority-classes", "{name}", EVERYBODY),
    **reads("workloads", "{namespace}/{name}", TENANTS),
    **edits("cluster-queues", "{name}", QUEUES, {"cohort_name": "research", "cohort": "research"}),
    "GET cluster-queues/{name}/quotas/{flavor}/": (QUEUES, None),
    "GET cluster-queues/{name}/user-limits/": (TENANTS + "Q", None),
    "GET local-queues/{namespace}/{name}/headroom/": (TENANTS, None),
    "PATCH cluster-queues/{name}/quotas/{flavor}/": (QUEUES, {"resources": {"cpu": {"nominal_quota": "5"}}}),
    "GET cohorts/{name}/quotas/{flavor}/": (QUEUES, None),
    "PATCH cohorts/{name}/quotas/{flavor}/": (QUEUES, {"resources": {"cpu": {"nominal_quota": "5"}}}),
    **edits("cohorts", "{name}", QUEUES, {"parent": "research"}),
    **edits("local-queues", "{namespace}/{name}", QUEUES, {"cluster_queue": "mine"}),
    **edits("resource-flavors", "{name}", ADMIN, {}),
    **edits("admission-checks", "{name}", ADMIN, {"controller_name": "example.com/billing"}),
    **edits("limit-ranges", "{namespace}/{name}", ADMIN, {"limits": [{"type": "Container", "max": {"cpu": "8"}}]}),
    **edits("namespaces", "{name}", ADMIN, {}),
    **edits("priority-classes", "{name}", ADMIN, {"value": 1}),
    **edits("multikueue-clusters", "{name}", ADMIN, {"cluster_profile": "east"}),
    **edits("multikueue-configs", "{name}", ADMIN, {"clusters": ["east"]}),
    **edits("reservations", "{name}", ADMIN, RESERVATION),
    **edits("provisioning-request-configs", "{name}", ADMIN, {"provisioning_class_name": "check-capacity"}),
    **edits("resource-quotas", "{namespace}/{name}", ADMIN, {"hard": {}}),
    **edits("runtime-classes", "{name}", ADMIN, {"handler": "nvidia"}),
    **edits("topologies", "{name}", ADMIN, {"levels": ["rack"]}),
    **edits("workload-priority-classes", "{name}", ADMIN, {"value": 1}),
    "DELETE manifests/{kind}/{name}/": (ADMIN, None),
    "DELETE manifests/{kind}/{namespace}/{name}/": (QUEUES, None),
    **edits("role-bindings", "{name}", ADMIN, {"user": "eve", "role": "viewer"}),
    "GET role-bindings/": (AUDITORS, None),
    "GET role-bindings/{name}/": (AUDITORS, None),
    "GET audit/": (AUDITORS, None),
    "GET audit/export/": (AUDITORS, None),
    "PATCH clusters/{name}/": (ADMIN, {"mode": "schedule"}),
    "PATCH nodes/{name}/": (ADMIN, {"cordoned": True}),
    "PATCH devices/{uuid}/": (ADMIN, {"cordoned": True}),
    "GET cluster-overviews/": (EVERYBODY + "O", None),  # of each cluster in which they have a role
    "GET cohorts/tree/": (EVERYBODY, None),
    "GET decisions/": (EVERYBODY, None),
    "GET device-allocations/": (EVERYBODY, None),
    "GET device-usage/": (EVERYBODY, None),
    "GET devices/{uuid}/samples/": (EVERYBODY, None),
    "GET drift/": (EVERYBODY, None),
    "GET published-devices/": (EVERYBODY, None),
    "GET served-objects/problems/": (EVERYBODY, None),
    "GET diagnostics/": (ALL_SEEING, None),
    "GET fragmentation/": (EVERYBODY, None),
    "GET history/": (EVERYBODY, None),
    "GET nodes/{name}/pods/": (EVERYBODY, None),
    # Each has their own: another's is not there.
    "GET notifications/": (EVERYBODY, None),
    "GET notifications/status/": (EVERYBODY, None),
    "POST notifications/read/": (EVERYBODY, {}),
    "GET notification-rules/": (EVERYBODY, None),
    "POST notification-rules/": (EVERYBODY, {"event": "WorkloadStarted"}),
    "PATCH notification-rules/{rule_id}/": ("", {"enabled": False}),
    "DELETE notification-rules/{rule_id}/": ("", None),
    "POST notification-rules/{rule_id}/test/": ("", None),
    "GET overview/": (EVERYBODY, None),
    "GET checkpoints/": (EVERYBODY, None),
    "GET checkpoints/figures/": (EVERYBODY, None),
    "GET prices/": (EVERYBODY, None),
    "PUT prices/": (ADMIN, {"currency": "EUR", "prices": [{"resource": "cpu", "per_hour": "1"}]}),
    "GET reports/{kind}/": (EVERYBODY, None),
    "GET scheduling-cycles/": (ALL_SEEING, None),
    "GET shadow/": (ALL_SEEING, None),
    "GET shadow/differences/": (EVERYBODY, None),
    # Each has their own: another's is not there.
    "GET studio/accuracy/": (EVERYBODY, None),
    "GET studio/questions/": (EVERYBODY, None),
    "POST studio/questions/": (TENANTS, QUESTION),
    "GET studio/questions/{question_id}/": ("", None),
    "PATCH studio/questions/{question_id}/": ("", {"name": "plan"}),
    "DELETE studio/questions/{question_id}/": ("", None),
    "POST studio/questions/{question_id}/apply/": ("", None),
    "GET workloads/counts/": (EVERYBODY, None),
    "GET workloads/{namespace}/{name}/events/": (TENANTS, None),
    "GET workloads/{namespace}/{name}/explanation/": (TENANTS, None),
    "GET workloads/{namespace}/{name}/moves/": (TENANTS, None),
    "GET workloads/{namespace}/{name}/pods/": (TENANTS, None),
    "GET workloads/{namespace}/{name}/pods/{pod}/log/": (TENANTS, None),
    "GET workloads/{namespace}/{name}/samples/": (TENANTS, None),
    "POST workloads/": (SUBMITTERS, WORKLOAD),
    "POST workloads/cancel/": (SUBMITTERS, KEYS),
    "POST workloads/finish/": (SUBMITTERS, KEYS),
    "POST workloads/hold/": (SUBMITTERS, KEYS),
    "POST workloads/priority/": ("AEN", KEYS | {"priority": 5}),
    "POST workloads/release/": (SUBMITTERS, KEYS),
    "POST workloads/requeue/": (SUBMITTERS, KEYS),
    "POST workloads/{namespace}/{name}/cancel/": (SUBMITTERS, None),
    "POST workloads/{namespace}/{name}/hold/": (SUBMITTERS, None),
    "POST workloads/{namespace}/{name}/release/": (SUBMITTERS, None),
    "POST workloads/{namespace}/{name}/requeue/": (SUBMITTERS, None),
    "POST workloads/{namespace}/{name}/priority/": ("AEN", {"priority": 5}),
    "PUT workloads/{namespace}/{name}/admission-checks/{check}/": (ADMIN, {"state": "Ready"}),
    "DELETE workloads/{namespace}/{name}/": (SUBMITTERS, None),
    "POST manifests/": (SUBMITTERS, MANIFEST),
    "POST preview/": (SUBMITTERS, MANIFEST),
    "GET manifests/{kind}/": (EVERYBODY, None),
    "GET manifests/{kind}/{name}/": (EVERYBODY, None),
    "GET manifests/{kind}/{namespace}/{name}/": (TENANTS, None),
    "GET session/": ("anyone", None),
    "POST auth/login/": ("anyone", None),
    "POST auth/token/": ("anyone", None),
    "POST auth/device/": ("anyone", None),
    "POST auth/device/token/": ("anyone", None),
    "GET auth/device/{user_code}/": (ANY_LOGIN, None),
    "POST auth/device/{user_code}/": (ANY_LOGIN, None),
    "POST auth/tokens/": (ANY_LOGIN, None),
    # Accounts belong to no cluster: an admin of one cluster is not enough.
    "GET service-accounts/": (EVERYWHERE, None),
    "POST service-accounts/": (EVERYWHERE, {"name": "robot"}),
    "DELETE service-accounts/{name}/": (EVERYWHERE, None),
    "GET service-accounts/{name}/tokens/": (EVERYWHERE, None),
    "POST service-accounts/{name}/tokens/": (EVERYWHERE, {"scope": "read"}),
    "DELETE service-accounts/{name}/tokens/{token_id}/": (EVERYWHERE, None),
    "GET users/": (EVERYWHERE, None),
    "POST users/": (EVERYWHERE, {"username": "dora", "password": "a-long-and-odd-one-7"}),
    "GET users/{name}/": (EVERYWHERE, None),
    "PATCH users/{name}/": (EVERYWHERE, {"groups": ["operators"]}),
    "GET users/{name}/tokens/": (EVERYWHERE, None),
    "DELETE users/{name}/tokens/{token_id}/": (EVERYWHERE, None),
    "POST auth/logout/": (ANY_LOGIN, None),
    "GET auth/tokens/": (ANY_LOGIN, None),
    "GET manifest-templates/": (ANY_LOGIN, None),
    "POST manifest-templates/": (ANY_LOGIN, {"name": "mine", "manifest": "kind: Job"}),
    "GET manifest-templates/{template_id}/": (ANY_LOGIN, None),
    "PATCH manifest-templates/{template_id}/": (ANY_LOGIN, {"name": "other"}),
    "DELETE manifest-templates/{template_id}/": (ANY_LOGIN, None),
    "GET saved-views/": (ANY_LOGIN, None),
    "POST saved-views/": (ANY_LOGIN, {"page": "workloads", "name": "mine", "search": {}}),
    "GET saved-views/{view_id}/": (ANY_LOGIN, None),
    "PATCH saved-views/{view_id}/": (ANY_LOGIN, {"name": "other"}),
    "DELETE saved-views/{view_id}/": (ANY_LOGIN, None),
    "DELETE auth/tokens/": (ANY_LOGIN, None),
    "DELETE auth/tokens/{token_id}/": (ANY_LOGIN, None),
}
NAMES: Final = {
    "admission-checks": "check",
    "clusters": "default",
    "cluster-queues": "mine",
    "cohorts": "sub",
    "limit-ranges": "limits",
    "local-queues": "local",
    "namespaces": "team-a",
    "nodes": "node",
    "priority-classes": "class",
    "multikueue-clusters": "worker",
    "multikueue-configs": "config",
    "provisioning-request-configs": "config",
    "resource-flavors": "default-flavor",
    "resource-quotas": "quota",
    "role-bindings": "of-the-test",
    "runtime-classes": "runtime",
    "service-accounts": "machine",
    "topologies": "topology",
    "reservations": "reserved",
    "users": "machine",
    "workload-priority-classes": "class",
    "workloads": "w",
}


def address(path: str) -> str:
    noun = path.partition("/")[0]
    kind = "localqueue" if "{namespace}" in path else "usage" if noun == "reports" else "resourceflavor"
    name = (
        {"localqueue": "local", "resourceflavor": "default-flavor"}[kind]
        if noun == "manifests"
        else NAMES.get(noun, "")
    )
    values = {
        "namespace": "team-a",
        "name": name,
        "kind": kind,
        "uuid": "GPU-1",
        "check": "check",
        "token_id": _ID,
        "user_code": "X",
        "flavor": "default-flavor",
        "pod": "w-0",
        "question_id": "1",
        "rule_id": "1",
        "template_id": "1",
        "view_id": "1",
    }
    for key, value in values.items():
        path = path.replace("{" + key + "}", value)
    # The web server opens a log that is followed: nothing of a cluster is needed to see whether it would.
    return f"/api/v1/{path}" + ("?follow=true" if path.endswith("/log/") else "")


@pytest.fixture
def clients(cluster: Cluster) -> dict[str, APIClient]:
    """A client for each letter, one for somebody without a role (X) and one for nobody (-)."""
    west = Cluster.objects.create(name="west")
    places = {"": None, "default": cluster, "west": west}
    make_cohort(cluster, "research", parent_name="root")
    sub = make_cohort(cluster, "sub", parent_name="research")
    group = ResourceGroup.objects.create(cohort=sub, position=0, covered_resources=["cpu"], flavors=["default-flavor"])
    FlavorQuota.objects.create(resource_group=group, flavor="default-flavor", resource="cpu", nominal_quota=1000)
    make_cluster_queue(cluster, "mine", local_queue="", cohort_name="research")
    in_team: dict[str, Any] = {"cluster": cluster, "namespace": "team-a", "created_at": EPOCH}
    LocalQueue.objects.create(name="local", cluster_queue_name="mine", **in_team)
    # The cohort `sub` is above a queue of team-a too, so that its tenants may know of it.
    make_cluster_queue(cluster, "below", local_queue="", cohort_name="sub")
    LocalQueue.objects.create(name="other", cluster_queue_name="below", **in_team)
    LimitRange.objects.create(name="limits", **in_team)
    ResourceQuota.objects.create(name="quota", **in_team)
    for model in (AdmissionCheck, PriorityClass, WorkloadPriorityClass, RuntimeClass, Topology):
        name = {AdmissionCheck: "check", RuntimeClass: "runtime", Topology: "topology"}.get(model, "class")
        more = {"value": 1} if model in (PriorityClass, WorkloadPriorityClass) else {}
        model.objects.create(cluster=cluster, name=name, created_at=EPOCH, **more)
    Device.objects.create(node=make_node(cluster, "node"), uuid="GPU-1", index=0, slots=10, memory_mib=100)
    create_workloads(
        cluster, [WorkloadSpec("team-a", "w", "local", (PodSetSpec("main", 1, {}, {"cpu": 1}),))], actor="x"
    )
    state = {"name": "check", "state": "Pending", "message": "", "lastTransitionTime": "2026-01-05T09:00:00Z"}
    in_workload: dict[str, Any] = {"workload": Workload.objects.get(), "pod_set": "main", "replica": 0}
    Pod.objects.create(namespace="team-a", name="w-0", uid="w-0", **in_workload)
    ProvisioningRequestConfig.objects.create(
        cluster=cluster, name="config", provisioning_class_name="check-capacity", created_at=EPOCH
    )
    Reservation.objects.create(
        cluster=cluster, name="reserved", node_names=["node"], starts_at=EPOCH, ends_at=EPOCH + timedelta(hours=1),
        created_at=EPOCH,
    )  # fmt: skip
    MultiKueueCluster.objects.create(cluster=cluster, name="worker", cluster_profile="east", created_at=EPOCH)
    MultiKueueConfig.objects.create(cluster=cluster, name="config", clusters=["worker"], created_at=EPOCH)
    Workload.objects.update(admission_check_states=[state], quota_reserved_at=EPOCH, status="QuotaReserved")
    RoleBinding.objects.create(cluster=cluster, name="of-the-test", username="eve", role=Role.VIEWER)
    create_token(create_service_account("machine").user)
    TokenDetails.objects.update(id=_ID)
    found = {"-": APIClient(), "X": APIClient()}
    found["X"].force_authenticate(User.objects.create_user("X"))
    for letter, (role, namespace, cohort, place) in BINDINGS.items():
        user = User.objects.create_user(letter)
        binding = RoleBinding(role=role, namespace=namespace, cohort=cohort, cluster=places[place])
        if letter in "SQ":  # by a group
            binding.group = f"group-{letter}"
            user.groups.add(Group.objects.create(name=binding.group))
        else:
            binding.username = letter
        binding.save()
        found[letter] = APIClient()
        found[letter].force_authenticate(user)
    return found


def ask(client: APIClient, operation: str, body: Any) -> int:
    """The status of the answer; what it changed is taken back."""
    method, _, path = operation.partition(" ")
    kind = "application/yaml" if isinstance(body, str) else "application/json"
    data = body if isinstance(body, str) else "" if body is None else json.dumps(body)
    let_a_studio_live()
    with transaction.atomic():
        response = client.generic(method, address(path), data, content_type=kind)
        transaction.set_rollback(True)
    return int(response.status_code)


def test_every_operation_has_an_entry() -> None:
    there = {
        f"{method.upper()} {path.removeprefix('/api/v1/')}"
        for path, operations in schema()["paths"].items()
        for method in operations
        if method in ("get", "put", "post", "patch", "delete")
    }
    assert there == set(RIGHTS)


def test_each_role_may_do_what_the_table_says(clients: dict[str, APIClient]) -> None:
    wrong = []
    for operation, (who, body) in RIGHTS.items():
        if who == "anyone":
            continue
        if who == ANY_LOGIN:
            assert ask(clients["-"], operation, body) == 401, operation
            continue
        for letter, client in clients.items():
            status = ask(client, operation, body)
            refused = status == 401 if letter == "-" else status in (403, 404)
            if refused != (letter not in who) or status >= 500:
                wrong.append(f"{letter} {operation}: {status}")
    assert wrong == []
