"""A day of an integrator: one program, with the published Python client alone, does a tenant's and an admin's work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from accounts.models import Cluster
from kueueweb_client import ApiError, Client, calls
from kueueweb_client.types import Key
from queues.models import Workload
from scheduler.leader.engine import Engine
from tests.users import make_user

MANY: Final = 300
"""More than an action changes in one transaction, and than a page has."""
ROLE: Final = """
apiVersion: kueueweb.io/v1
kind: RoleBinding
metadata: {name: dora}
spec: {user: dora, role: submitter, namespace: team}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: high}
value: 100
"""
JOB: Final = """
apiVersion: batch/v1
kind: Job
metadata: {name: previewed, namespace: team, labels: {kueue.x-k8s.io/queue-name: queue}}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: busybox, resources: {requests: {cpu: 1}}}]
"""


@pytest.fixture
def tenant(server: str, client: Client) -> Iterator[Client]:
    """The client of a submitter of team."""
    make_user("dora")
    client.apply(ROLE)
    with Client(server) as anonymous:
        token = anonymous.send(calls.token("dora", "dora-secret"))["token"]
    with Client(server, token) as found:
        yield found


@pytest.fixture
def engine(server: str) -> Engine:
    """The scheduler, which decides when the day says so."""
    return Engine(Cluster.objects.get(), "day")


def workload(prefix: str, cpu: str = "1", queue: str = "queue") -> dict[str, Any]:
    return {
        "namespace": "team",
        "generate_name": prefix,
        "local_queue": queue,
        "pod_sets": [{"count": 1, "requests": {"cpu": cpu}}],
    }


def refusal(client: Client, call: Any) -> ApiError:
    """The refusal of a call."""
    with pytest.raises(ApiError) as refused:
        client.send(call)
    return refused.value


def test_submissions(tenant: Client) -> None:
    [one] = tenant.submit(workload("one-"))
    assert len(tenant.submit(*(workload("many-") for _ in range(MANY)))) == MANY
    [first] = tenant.submit(workload("keyed-"), idempotency_key="day-1")
    [again] = tenant.submit(workload("keyed-"), idempotency_key="day-1")
    assert again == first
    other = refusal(tenant, calls.submit([workload("other-")], idempotency_key="day-1"))
    assert other.status == 409
    assert Workload.objects.count() == MANY + 2

    rows = list(tenant.workloads(namespace="team", limit=100))
    assert len(rows) == len({row["name"] for row in rows}) == MANY + 2
    assert {"namespace": "team", "name": rows[-1]["name"]}.items() <= dict(one).items()
    counts = tenant.send(calls.read("workloads", "counts"))
    assert counts["total"] == MANY + 2

    keys: list[Key] = [{"namespace": "team", "name": row["name"]} for row in rows]
    missing: Key = {"namespace": "team", "name": "never-was"}
    done = tenant.send(calls.act_on("cancel", [*keys, missing]))
    assert len(done["changed"]) == MANY + 2
    assert [(row["name"], row["reason"]) for row in done["skipped"]] == [("never-was", "NotFound")]
    assert list(tenant.workloads(namespace="team", status="Pending")) == []


def test_the_life_of_a_workload(tenant: Client, engine: Engine) -> None:
    [key] = tenant.submit(workload("life-", cpu="100"))
    engine.run()
    key = {"namespace": key["namespace"], "name": key["name"]}
    names = ("workloads", key["namespace"], key["name"])
    explained = tenant.send(calls.read(*names, "explanation"))
    assert explained["state"] == "CannotStart"
    assert tenant.hold(key) == [key]
    assert tenant.hold(key) == []
    assert tenant.send(calls.act_on("hold", [key]))["skipped"][0]["reason"] == "Conflict"
    assert tenant.release(key) == [key]
    tenant.send(calls.act("priority", [key], priority_class="high"))
    assert tenant.workload(key["namespace"], key["name"])["priority"] == 100
    assert refusal(tenant, calls.act("priority", [key], priority=5)).status == 403
    assert tenant.cancel(key) == [key]
    assert tenant.cancel(key) == []
    assert {event["reason"] for event in tenant.events(key["namespace"], key["name"])} >= {"Created", "Finished"}
    assert refusal(tenant, calls.workload("team", "never-was")).status == 404


def test_an_admin_edits_quota_while_another_does(client: Client, tenant: Client) -> None:
    queue, tag = client.send(calls.read_with_tag("cluster-queues", "main"))
    assert queue["resource_groups"][0]["flavors"][0]["resources"][0]["nominal_quota"] == "10"
    quota = {"resources": {"cpu": {"nominal_quota": "12"}}}
    address = ("cluster-queues", "main", "quotas", "cpus")
    client.send(calls.patch(*address, changes=quota, tag=tag, dry_run=True))
    client.send(calls.patch(*address, changes=quota, tag=tag))
    stale = refusal(client, calls.patch(*address, changes=quota, tag=tag))
    assert (stale.status, stale.reason) == (412, "PreconditionFailed")
    assert refusal(tenant, calls.patch(*address, changes=quota)).status == 403
    _, newer = client.send(calls.read_with_tag("cluster-queues", "main"))
    client.send(calls.patch("cluster-queues", "main", changes={"fair_weight": "2"}, tag=newer))
    groups = client.send(calls.read("cluster-queues", "main"))["resource_groups"]
    untagged = refusal(client, calls.patch("cluster-queues", "main", changes={"resource_groups": groups}))
    assert (untagged.status, untagged.reason) == (428, "PreconditionRequired")

    manifest = client.send(calls.manifests("clusterqueue", "main"))
    assert [row["outcome"] for row in client.apply(manifest)["objects"]] == ["unchanged"]
    records = list(client.rows("audit", kind="ClusterQueue", name="main", verb="update"))
    assert [record["username"] for record in records] == ["alice", "alice"]


def test_reports_of_the_day(client: Client, tenant: Client, engine: Engine) -> None:
    tenant.submit(*(workload("work-") for _ in range(3)))
    engine.run()
    for kind in ("waits", "usage", "idle", "preemptions"):
        assert "rows" in client.send(calls.read("reports", kind)), kind
    [previewed] = tenant.send(calls.preview(JOB))["workloads"]
    assert previewed["explanation"]["state"] == "FitsNow"
    assert [row["status"] for row in client.workloads(namespace="team")] == ["Admitted"] * 3
    seen = {item["metadata"]["name"] for page in tenant.object_pages(
        "apis/kueue.x-k8s.io/v1beta2", "workloads", namespace="team", limit=2) for item in page["items"]}  # fmt: skip
    assert len(seen) == 3
