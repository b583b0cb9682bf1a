"""The examples of the OpenAPI document: a platform team's day over REST, from an empty cluster.

Each call here is one of the document's examples, and is made. `make examples` writes what was sent and answered to
`kueueweb/api/examples.json`; without it, this test says whether the file is still what the product takes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from django.contrib.auth.models import User

from accounts.models import Cluster, Role, RoleBinding
from accounts.services.tokens import create_token
from history.services.checkpoints.checkpoint_taking import take_checkpoint
from kueueweb.api import examples
from scheduler.leader.engine import Engine
from tests.api_client import SchemaClient, schema
from tests.factories import make_node
from tests.studio_answers import answer_questions, let_a_studio_live
from tests.users import client_of, make_user

pytestmark = pytest.mark.django_db(transaction=True)

FILE: Final = Path(examples.__file__).with_name("examples.json")
NAMESPACE: Final = "ai-research"
JOB: Final = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: train
  namespace: ai-research
  labels:
    kueue.x-k8s.io/queue-name: research
spec:
  parallelism: 2
  completions: 2
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: main
          image: ghcr.io/example/train:1.4
          command: [python, train.py]
          resources:
            limits: {cpu: "4", memory: 16Gi, nvidia.com/gpu: "1", nvidia.com/gpumem: "20000"}
"""
WITHOUT_ANSWER: Final = {
    ("get", "/api/v1/workloads/{namespace}/{name}/pods/{pod}/log/"),  # plain text, and it needs a cluster
}


@dataclass(slots=True)
class Day:
    """The calls of a day, in order, and what they were answered."""

    admin: SchemaClient
    user: SchemaClient
    found: dict[str, dict[str, Any]] = field(default_factory=dict)

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, str] | None = None,
        by: SchemaClient | None = None,
        **names: str,
    ) -> Any:
        """Make a call, and keep it as the example of its operation if it is the first of it."""
        return self.make(method, path, body, names, query, by)

    def make(
        self,
        method: str,
        path: str,
        body: Any,
        names: Mapping[str, str],
        query: Mapping[str, str] | None = None,
        by: SchemaClient | None = None,
    ) -> Any:
        template = f"/api/v1/{path}"
        client = by or self.admin
        address = template.format(**names) + ("?" + "&".join(f"{k}={v}" for k, v in query.items()) if query else "")
        if isinstance(body, str):
            answer = client.generic(method.upper(), address, body, "application/yaml")
        else:
            answer = getattr(client, method)(address, body, format="json", headers={"Accept": "application/json"})
        assert answer.status_code < 300, (method, address, answer.content)
        kind = answer.headers.get("Content-Type", "").partition(";")[0]
        given = answer.json() if kind == "application/json" and answer.content else None
        kept = self.found.setdefault(f"{method} {template}", {})
        if body is not None:
            kept.setdefault("request", _without_secrets(body))
        if given is not None:
            kept.setdefault("answer", _short(given))
        return given

    def made_changed_and_deleted(
        self, path: str, made: Mapping[str, Any], change: Mapping[str, Any], **names: str
    ) -> None:
        """The five operations on a kind of object."""
        self.make("put", path, made, names)
        self.make("get", path, None, names)
        self.make("patch", path, change, names)
        self.make("get", path.partition("{")[0], None, {})
        self.make("delete", path, None, names)


def _without_secrets(body: Any) -> Any:
    """With zeros instead of what once was a secret."""
    if not isinstance(body, dict):
        return body
    return {
        key: "0" * len(value) if key in {"token", "device_code"} and isinstance(value, str) else value
        for key, value in body.items()
    }


def _short(answer: Any) -> Any:
    """With one row of each list of results."""
    answer = _without_secrets(answer)
    if isinstance(answer, dict) and isinstance(answer.get("results"), list):
        return answer | {"results": answer["results"][:1]}
    return answer[:1] if isinstance(answer, list) else answer


def test_each_example_is_taken(day: Day, settle: Callable[[], None]) -> None:
    set_up(day)
    accounts(day)
    configuration(day)
    workloads(day, settle)
    looking(day)
    deletions(day)
    documented = documented_operations()
    if os.environ.get("KUEUEWEB_WRITE_EXAMPLES"):
        write(day.found, documented)
    kept = json.loads(FILE.read_text(encoding="utf-8"))
    assert {key: one.get("request") for key, one in kept.items()} == {
        key: day.found.get(key, {}).get("request") for key in kept
    }, "run `make examples`: the calls have changed"
    missing = [key for key, answers in documented.items() if answers and "answer" not in kept.get(key, {})]
    assert missing == [], "these operations have no example; add a call and run `make examples`"


def documented_operations() -> dict[str, bool]:
    """Every operation, and whether it always answers with JSON when all is well."""
    return {
        f"{method} {path}": (method, path) not in WITHOUT_ANSWER
        and "204" not in operation["responses"]
        and any(
            code.startswith("2") and "application/json" in answer.get("content", {})
            for code, answer in operation["responses"].items()
        )
        for path, operations in schema()["paths"].items()
        for method, operation in operations.items()
    }


def write(found: Mapping[str, Mapping[str, Any]], documented: Mapping[str, bool]) -> None:
    """Keep what was sent and answered; an answer without rows does not replace one with some."""
    before = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    kept = {key: dict(found.get(key, {})) for key in sorted(documented)}
    for key, one in kept.items():
        old = before.get(key, {}).get("answer")
        if old is not None and ("answer" not in one or one["answer"] in ([], {}) or _is_empty(one["answer"])):
            one["answer"] = old
    text = json.dumps({key: one for key, one in kept.items() if one}, indent=1, ensure_ascii=False)
    FILE.write_text(f"{text}\n", encoding="utf-8")


def _is_empty(answer: Any) -> bool:
    return isinstance(answer, dict) and answer.get("results") == []


GROUPS: Final = [
    {
        "covered_resources": ["cpu", "memory", "nvidia.com/gpu", "nvidia.com/gpumem"],
        "flavors": [
            {
                "name": "a100",
                "resources": [
                    {"name": "cpu", "nominal_quota": "256"},
                    {"name": "memory", "nominal_quota": "1Ti"},
                    {"name": "nvidia.com/gpu", "nominal_quota": "16", "borrowing_limit": "8"},
                    {"name": "nvidia.com/gpumem", "nominal_quota": "1310720"},
                ],
            }
        ],
    }
]
CHECKED: Final = [{"name": "billing", "on_flavors": ["a100"]}]
ASKED: Final = {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1", "nvidia.com/gpumem": "20000"}
MANY: Final = {"workloads": [{"namespace": NAMESPACE, "name": "evaluate"}]}
RULE: Final = {
    "event": "WorkloadStarted",
    "channels": ["webhook"],
    "webhook_url": "https://chat.example.com/hooks/kueueweb",
}


@pytest.fixture
def day(db: None) -> Day:
    """Alice, who administers, and bob, who submits, in a cluster with one node of eight devices."""
    cluster = Cluster.objects.create(name="default", simulated=True)
    devices = [
        {"uuid": f"GPU-{index}", "slots": 10, "memory_mib": 81_920, "type": "NVIDIA-NVIDIA A100-SXM4-80GB"}
        for index in range(8)
    ]
    labels = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "topology.kubernetes.io/rack": "rack-1"}
    room = {"cpu": 128_000, "memory": 2**40, "pods": 250}
    make_node(cluster, "gpu-1", devices, labels=labels, allocatable=room)
    admin, user = make_user("alice"), make_user("bob")
    RoleBinding.objects.create(name="bob-research", username="bob", role=Role.SUBMITTER, namespace=NAMESPACE)
    return Day(client_of(admin), client_of(user))


@pytest.fixture
def settle(day: Day) -> Callable[[], None]:
    """Let the scheduler decide until nothing more happens."""
    engine = Engine(Cluster.objects.get(), "examples")

    def run() -> None:
        while engine.run().more:
            pass

    return run


def set_up(day: Day) -> None:
    """What a namespace needs before somebody submits."""
    day.call("put", "namespaces/{name}/", {"labels": {"team": "research"}}, name=NAMESPACE)
    flavor = {"node_labels": {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}}
    day.call("put", "resource-flavors/{name}/", flavor, name="a100")
    day.call("put", "cohorts/{name}/", {"fair_weight": "2", "resource_groups": GROUPS}, name="ai")
    day.call("put", "admission-checks/{name}/", {"controller_name": "example.com/billing"}, name="billing")
    queue = {
        "cohort": "ai",
        "namespace_selector": {},
        "resource_groups": GROUPS,
        "admission_checks": CHECKED,
        "preemption": {"within_cluster_queue": "LowerPriority", "reclaim_within_cohort": "Any"},
        "user_limits": [{"users": ["*"], "workloads": 20, "resources": {"nvidia.com/gpu": "16"}}],
    }
    day.call("put", "cluster-queues/{name}/", queue, name="research")
    day.call(
        "put", "local-queues/{namespace}/{name}/", {"cluster_queue": "research"}, namespace=NAMESPACE, name="research"
    )
    priority = {"value": 1000, "description": "Results of questions that users wait for."}
    day.call("put", "workload-priority-classes/{name}/", priority, name="urgent")
    day.call("patch", "workload-priority-classes/{name}/", {"description": "Before all others."}, name="urgent")


def accounts(day: Day) -> None:
    """People, machines, and what they may do."""
    day.call("post", "users/", {"username": "carol", "password": "a-long-and-odd-one-7", "email": "carol@example.com"})
    day.call("get", "users/{name}/", name="carol")
    day.call("patch", "users/{name}/", {"groups": ["research"]}, name="carol")
    binding = {"group": "research", "role": "submitter", "in_namespace": NAMESPACE}
    day.call("put", "role-bindings/{name}/", binding, name="researchers")
    day.call("patch", "role-bindings/{name}/", {"role": "viewer"}, name="researchers")
    day.call("delete", "role-bindings/{name}/", name="researchers")
    create_token(User.objects.get(username="carol"), "laptop")
    tokens = day.call("get", "users/{name}/tokens/", name="carol")
    day.call("delete", "users/{name}/tokens/{token_id}/", name="carol", token_id=tokens["results"][0]["id"])

    day.call("post", "service-accounts/", {"name": "pipeline", "description": "The nightly evaluation."})
    wish = {"name": "nightly", "scope": "submit", "namespaces": [NAMESPACE], "days": 90}
    day.call("post", "service-accounts/{name}/tokens/", wish, name="pipeline")
    machine = day.call("get", "service-accounts/{name}/tokens/", name="pipeline")["results"][0]["id"]
    day.call("delete", "service-accounts/{name}/tokens/{token_id}/", name="pipeline", token_id=machine)
    day.call("delete", "service-accounts/{name}/", name="pipeline")

    logged_out = SchemaClient()
    login = {"username": "bob", "password": "bob-secret"}
    day.call("post", "auth/token/", login | {"name": "laptop", "scope": "submit", "days": 30}, by=logged_out)
    day.call("post", "auth/login/", login, by=logged_out)
    mine = day.call("post", "auth/tokens/", wish | {"name": "notebook"}, by=day.user)
    day.call("delete", "auth/tokens/{token_id}/", token_id=mine["id"], by=day.user)
    asked = day.call("post", "auth/device/", {"name": "kueueweb on a laptop", "scope": "submit"}, by=logged_out)
    day.call("get", "auth/device/{user_code}/", user_code=asked["user_code"], by=day.user)
    day.call("post", "auth/device/{user_code}/", {"allow": True}, user_code=asked["user_code"], by=day.user)
    day.call("post", "auth/device/token/", {"device_code": asked["device_code"]}, by=SchemaClient())


def configuration(day: Day) -> None:
    """Every kind of object: made, read, changed and deleted."""
    change = day.made_changed_and_deleted
    day.call("patch", "clusters/{name}/", {"mode": "schedule"}, name="default")
    day.call("get", "clusters/{name}/", name="default")
    labels = {"labels": {"owner": "platform"}}
    change(
        "topologies/{name}/",
        {"levels": ["topology.kubernetes.io/rack", "kubernetes.io/hostname"]},
        labels,
        name="racks",
    )
    change(
        "priority-classes/{name}/", {"value": 1000, "description": "Inference."}, {"description": "Live."}, name="live"
    )
    change("runtime-classes/{name}/", {"handler": "nvidia", "pod_overhead": {"cpu": "100m"}}, labels, name="nvidia")
    window = {"starts_at": "2030-01-08T08:00:00Z", "ends_at": "2030-01-08T12:00:00Z"}
    reserved = {**window, "nodes": {"names": ["gpu-1"], "labels": {}}, "if_busy": "Evict", "comment": "New firmware"}
    day.call("post", "reservation-calendar/preview/", {**reserved, "name": "firmware"})
    change("reservations/{name}/", reserved, {"allowed": {"users": ["alice"]}}, name="firmware")
    period = {"since": "2030-01-08T00:00:00Z", "until": "2030-01-09T00:00:00Z"}
    day.make("put", "reservations/{name}/", reserved, {"name": "firmware"})
    day.call("get", "reservation-calendar/", query=period)
    day.call("get", "job-flows/", query={"namespace": "research"})
    day.make("delete", "reservations/{name}/", None, {"name": "firmware"})
    change("multikueue-clusters/{name}/", {"cluster_profile": "east"}, labels, name="east")
    change("multikueue-configs/{name}/", {"clusters": ["east"]}, {"clusters": ["east", "west"]}, name="everywhere")
    change(
        "provisioning-request-configs/{name}/",
        {"provisioning_class_name": "check-capacity.autoscaling.x-k8s.io", "managed_resources": ["nvidia.com/gpu"]},
        labels,
        name="capacity",
    )
    limits = [{"type": "Container", "defaultRequest": {"cpu": "1"}, "max": {"cpu": "64"}}]
    change("limit-ranges/{namespace}/{name}/", {"limits": limits}, labels, namespace=NAMESPACE, name="containers")
    hard = {"hard": {"requests.cpu": "512", "count/jobs.batch": "100"}}
    change("resource-quotas/{namespace}/{name}/", hard, labels, namespace=NAMESPACE, name="research")
    for noun, name in (("cluster-queues", "research"), ("cohorts", "ai")):
        cell = {"resources": {"nvidia.com/gpu": {"nominal_quota": "24"}}}
        day.call("patch", noun + "/{name}/quotas/{flavor}/", cell, name=name, flavor="a100")
        day.call("get", noun + "/{name}/quotas/{flavor}/", name=name, flavor="a100")
        day.call("get", noun + "/{name}/", name=name)
        day.call("get", noun + "/")
    day.call("patch", "cluster-queues/{name}/", {"stop_policy": "None"}, name="research")
    day.call("get", "cluster-queues/{name}/user-limits/", name="research")
    day.call("patch", "cohorts/{name}/", {"fair_weight": "3"}, name="ai")
    day.call("patch", "local-queues/{namespace}/{name}/", {"stop_policy": "None"}, namespace=NAMESPACE, name="research")
    day.call("get", "local-queues/{namespace}/{name}/", namespace=NAMESPACE, name="research")
    day.call("get", "local-queues/{namespace}/{name}/headroom/", namespace=NAMESPACE, name="research")
    day.call("get", "headroom/", query={"namespace": NAMESPACE})
    day.call("get", "resource-flavors/{name}/", name="a100")
    day.call("patch", "resource-flavors/{name}/", labels, name="a100")
    day.call("get", "admission-checks/{name}/", name="billing")
    day.call("patch", "admission-checks/{name}/", labels, name="billing")
    day.call("get", "workload-priority-classes/{name}/", name="urgent")
    day.call("get", "namespaces/{name}/", name=NAMESPACE)
    day.call("patch", "namespaces/{name}/", labels, name=NAMESPACE)
    price = {"flavor": "a100", "resource": "nvidia.com/gpu", "per_hour": "2.50"}
    day.call("put", "prices/", {"currency": "EUR", "prices": [price]})
    day.call("patch", "nodes/{name}/", {"cordoned": True}, name="gpu-1")
    day.call("patch", "nodes/{name}/", {"cordoned": False}, name="gpu-1")
    day.call("patch", "devices/{uuid}/", {"cordoned": True}, uuid="GPU-7")

    view = {"page": "workloads", "name": "waiting", "search": {"status": "Pending"}}
    view_id = str(day.call("post", "saved-views/", view, by=day.user)["id"])
    day.call("get", "saved-views/", by=day.user)
    day.call("get", "saved-views/{view_id}/", view_id=view_id, by=day.user)
    day.call("patch", "saved-views/{view_id}/", {"name": "what waits"}, view_id=view_id, by=day.user)
    day.call("delete", "saved-views/{view_id}/", view_id=view_id, by=day.user)

    template = {"name": "nightly", "manifest": "apiVersion: batch/v1\nkind: Job\n"}
    template_id = str(day.call("post", "manifest-templates/", template, by=day.user)["id"])
    day.call("get", "manifest-templates/", by=day.user)
    day.call("get", "manifest-templates/{template_id}/", template_id=template_id, by=day.user)
    day.call("patch", "manifest-templates/{template_id}/", {"name": "weekly"}, template_id=template_id, by=day.user)
    day.call("delete", "manifest-templates/{template_id}/", template_id=template_id, by=day.user)


def workloads(day: Day, settle: Callable[[], None]) -> None:
    """Submitted in each way, checked, stopped, resumed and ended."""
    bob = day.user
    rule = day.call("post", "notification-rules/", RULE, by=bob)
    day.call("patch", "notification-rules/{rule_id}/", {"enabled": False}, rule_id=rule["id"], by=bob)
    day.call("get", "notification-rules/", by=bob)
    pod_sets = [{"name": "main", "count": 2, "requests": ASKED}]
    one = {"namespace": NAMESPACE, "local_queue": "research", "pod_sets": pod_sets}
    day.call("post", "preview/", JOB, by=bob)
    day.call("post", "manifests/", JOB, by=bob)
    day.call("post", "workloads/", [one | {"name": "evaluate", "priority_class": "urgent"}], by=bob)
    day.call("post", "workloads/", [one | {"name": "sweep"}], by=bob)
    settle()
    check = "workloads/{namespace}/{name}/admission-checks/{check}/"
    day.call(
        "put", check, {"state": "Ready", "message": "Paid for."}, check="billing", namespace=NAMESPACE, name="evaluate"
    )
    settle()
    studio(day)
    for verb in ("events", "explanation", "moves", "pods", "samples"):
        day.call("get", "workloads/{namespace}/{name}/" + verb + "/", by=bob, namespace=NAMESPACE, name="evaluate")
    day.call("get", "workloads/{namespace}/{name}/", by=bob, namespace=NAMESPACE, name="evaluate")
    urgent = {"priority_class": "urgent"}
    day.call("post", "workloads/{namespace}/{name}/priority/", urgent, namespace=NAMESPACE, name="sweep", by=bob)
    day.call("post", "workloads/priority/", MANY | urgent, by=bob)
    day.call("post", "workloads/{namespace}/{name}/requeue/", namespace=NAMESPACE, name="evaluate", by=bob)
    settle()
    day.call("post", "workloads/requeue/", MANY, by=bob)
    for verb in ("hold", "release"):
        day.call("post", "workloads/{namespace}/{name}/" + verb + "/", namespace=NAMESPACE, name="sweep", by=bob)
        day.call("post", f"workloads/{verb}/", MANY, by=bob)
    day.call("post", "workloads/finish/", MANY | {"reason": "Succeeded", "message": "All of 12 epochs."}, by=bob)
    day.call("post", "workloads/{namespace}/{name}/cancel/", namespace=NAMESPACE, name="sweep", by=bob)
    day.call("post", "workloads/", [one | {"name": "again"}, one | {"name": "last"}], by=bob)
    settle()
    day.call("post", "workloads/cancel/", {"workloads": [{"namespace": NAMESPACE, "name": "again"}]}, by=bob)


def looking(day: Day) -> None:
    """Every list and report."""
    for noun in (
        "admission-checks", "audit", "audit/export", "auth/tokens", "cluster-overviews", "clusters", "cohorts/tree",
        "decisions", "device-allocations", "device-usage", "devices", "diagnostics", "drift", "fragmentation",
        "local-queues", "namespaces", "nodes", "notifications", "notifications/status", "overview", "prices",
        "published-devices", "resource-flavors", "role-bindings", "scheduling-cycles", "served-objects/problems",
        "service-accounts", "session", "shadow", "shadow/differences", "users", "workload-priority-classes",
        "workloads", "workloads/counts",
    ):  # fmt: skip
        day.call("get", f"{noun}/")
    day.call("get", "history/", query={"metric": "pending", "scope": "cluster"})
    day.call("get", "reports/{kind}/", kind="waits")
    taken = take_checkpoint(Cluster.objects.get()).taken_at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    day.call("get", "checkpoints/")
    day.call("get", "checkpoints/figures/", query={"at": taken})
    day.call("get", "devices/{uuid}/", uuid="GPU-0")
    day.call("get", "devices/{uuid}/samples/", uuid="GPU-0")
    day.call("get", "nodes/{name}/", name="gpu-1")
    day.call("get", "nodes/{name}/pods/", name="gpu-1")
    day.call("get", "manifests/{kind}/", kind="clusterqueue")
    day.call("get", "manifests/{kind}/{name}/", kind="clusterqueue", name="research")
    day.call("get", "manifests/{kind}/{namespace}/{name}/", kind="localqueue", namespace=NAMESPACE, name="research")
    day.call("post", "notifications/read/", {"ids": []})


def studio(day: Day) -> None:
    """Ask what would start a workload that waits; a studio answers, as `manage.py studio` does in a child."""
    let_a_studio_live()
    bob, asked = day.user, {"kind": "remedies", "workload": {"namespace": NAMESPACE, "name": "sweep"}}
    question = day.call("post", "studio/questions/", asked, by=bob)
    answer_questions()
    day.call("get", "studio/accuracy/", by=bob)
    day.call("get", "studio/questions/", by=bob)
    day.call("get", "studio/questions/{question_id}/", question_id=question["id"], by=bob)
    day.call("delete", "studio/questions/{question_id}/", question_id=question["id"], by=bob)
    plan = day.make("post", "studio/questions/", {"kind": "what-if", "plan": f"end: [{NAMESPACE}/sweep]"}, {}, by=bob)
    day.call("patch", "studio/questions/{question_id}/", {"name": "without sweep"}, question_id=plan["id"], by=bob)
    answer_questions()
    checked = {"dry_run": "true"}
    day.call("post", "studio/questions/{question_id}/apply/", query=checked, question_id=plan["id"], by=bob)


def deletions(day: Day) -> None:
    """What is left is taken down again."""
    bob = day.user
    day.call("delete", "workloads/{namespace}/{name}/", namespace=NAMESPACE, name="last", by=bob)
    rule = day.call("get", "notification-rules/", by=bob)
    rules = rule["results"] if isinstance(rule, dict) else rule
    day.call("delete", "notification-rules/{rule_id}/", rule_id=rules[0]["id"], by=bob)
    day.call("delete", "manifests/{kind}/{namespace}/{name}/", kind="localqueue", namespace=NAMESPACE, name="research")
    day.call("put", "local-queues/{namespace}/{name}/", {"cluster_queue": "spare"}, namespace=NAMESPACE, name="spare")
    day.call("delete", "local-queues/{namespace}/{name}/", namespace=NAMESPACE, name="spare")
    for noun, name in (("cluster-queues", "research"), ("cohorts", "ai"), ("admission-checks", "billing")):
        day.call("delete", noun + "/{name}/", name=name)
    day.call("delete", "workload-priority-classes/{name}/", name="urgent")
    day.call("put", "topologies/{name}/", {"levels": ["kubernetes.io/hostname"]}, name="hosts")
    day.call("delete", "manifests/{kind}/{name}/", kind="topology", name="hosts")
    day.call("delete", "resource-flavors/{name}/", name="a100")
    day.call("put", "namespaces/{name}/", {}, name="unused")
    day.call("delete", "namespaces/{name}/", name="unused")
