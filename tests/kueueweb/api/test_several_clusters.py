"""One answer of several clusters: `?cluster=a,b` and `?cluster=*`, within what the reader may see in each."""

import csv
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import AuditRecord, AuditVerb, Cluster, ClusterMode, Role, RoleBinding
from accounts.services.audit import record
from accounts.services.tokens import create_token
from foundation.time_series import Resolution
from gpus.models import AllocationSource, Device, DeviceAllocation, DeviceSample, Node
from notifications.models import NotificationRule
from notifications.services.gathering import tell
from notifications.services.occurrences import Occurrence
from queues.models import ServedObject, Topology, Workload
from queues.services.cluster_objects import store_cluster_objects
from scheduler.models import Decision, Lease, SchedulingCycle, ShadowCount, ShadowDifference
from tests.api_client import SchemaClient
from tests.claim_objects import claim, driver_class, resource_slice
from tests.factories import START, make_cluster, make_cluster_queue, make_cohort, make_node, make_workload
from tests.users import client_of, make_user

LISTS = (
    "workloads", "cluster-queues", "cohorts", "local-queues", "resource-flavors", "topologies", "nodes", "devices",
    "device-allocations", "decisions", "shadow/differences", "served-objects/problems",
)  # fmt: skip
RECORDS = ("audit", "role-bindings", "scheduling-cycles", "shadow")
"""Lists that not every reader of a cluster may read."""
OWN = ("notifications", "notification-rules", "notifications/status")
OTHERS = ("namespaces", "workloads/counts", "cluster-overviews")
REPORTS = ("reports/waits", "reports/usage", "reports/idle", "reports/preemptions")
WHOLE_LISTS = ("drift", "device-usage", "published-devices")
PREEMPTED = "Preempted other/w0 (InClusterQueue)"


def fill(cluster: Cluster) -> None:
    """A row for each list, of the namespaces `team` and `other`; their names are the same in each cluster."""
    Topology.objects.create(cluster=cluster, name="racks", levels=["rack"], created_at=START)
    ServedObject.objects.create(cluster=cluster, kind="ClusterQueue", name="main", problem="refused")
    for published in (driver_class(), resource_slice("node-0", 1), claim("held", [("node-0", "gpu-0")])):
        metadata = published["metadata"]
        key = (metadata.get("namespace", ""), metadata["name"])
        store_cluster_objects(cluster, published["kind"], {key: published}, gone=())
    make_cohort(cluster, "all")
    make_cluster_queue(cluster, "main", {"gpu": {"cpu": 4_000}, "spot": {"cpu": 8_000}}, cohort_name="all")
    make_cluster_queue(cluster, "hidden", {"gpu": {"cpu": 1_000}}, local_queue="", cohort_name="all")
    node = make_node(cluster, "node-0", [{"uuid": f"GPU-{cluster.name}", "used_slots": 1}])
    device = Device.objects.get(node=node)
    DeviceSample.objects.create(device=device, at=timezone.now(), resolution=Resolution.RAW, memory_used_mib=7)
    for index, namespace in enumerate(("team", "other")):
        workload = make_workload(cluster, f"w{index}", namespace=namespace, cluster_queue_name="main")
        DeviceAllocation.objects.create(
            cluster=cluster,
            node=node,
            device=device,
            device_uuid=f"GPU-{cluster.name}",
            workload=workload,
            memory_mib=1,
            cores_percent=1,
            created_at=START,
        )
        found = {"source": AllocationSource.EXTERNAL, "namespace": namespace, "pod_name": "stray"}
        DeviceAllocation.objects.create(
            cluster=cluster, node=node, device_uuid="GPU-?", memory_mib=1, cores_percent=1, created_at=START, **found
        )
        choice = {"act": "Preempt", "cluster_queue": "main", "flavors": [], "reason": "Preempted", "message": PREEMPTED}
        ShadowDifference.objects.create(
            cluster=cluster, at=START, namespace=namespace, workload_name=workload.name, workload_uid=workload.uid,
            verdict="OnlyTheirs", theirs=choice, ours=choice,
        )  # fmt: skip
        Decision.objects.create(
            id=workload.pk,
            decided_at=START,
            cluster_name=cluster.name,
            epoch=1,
            cycle=index,
            action="Preempt",
            namespace=namespace,
            workload_name=workload.name,
            workload_uid=workload.uid,
            cluster_queue_name="main",
            reason="Preempted",
            message=PREEMPTED,
            detail={"victim": "other/w0"},
        )


@pytest.fixture
def two(db: None) -> tuple[Cluster, Cluster]:
    found = make_cluster("east"), make_cluster("west")
    for cluster in found:
        fill(cluster)
    return found


def bound(name: str, *places: tuple[Role, str, str]) -> SchemaClient:
    """A user with roles: (role, namespace, cluster)."""
    user = User.objects.create_user(name)
    for index, (role, namespace, cluster) in enumerate(places):
        RoleBinding.objects.create(
            name=f"{name}-{index}",
            username=name,
            role=role,
            namespace=namespace,
            cluster=Cluster.objects.get(name=cluster),
        )
    return client_of(user)


def rows(client: SchemaClient, noun: str, query: str = "cluster=*") -> list[dict[str, Any]]:
    response = client.get(f"/api/v1/{noun}/?{query}")
    assert response.status_code == 200, response.content
    found: list[dict[str, Any]] = response.json()["results"]
    return found


def test_every_list_answers_of_several_clusters(two: tuple[Cluster, Cluster]) -> None:
    alice = client_of(make_user("alice"))
    for noun in LISTS:
        east, west = rows(alice, noun, "cluster=east"), rows(alice, noun, "cluster=west")
        assert {row["cluster"] for row in east} == {"east"}, noun
        both = rows(alice, noun)
        assert sorted(map(key, both)) == sorted(map(key, east + west)), noun
        assert both == rows(alice, noun, "cluster=west,east"), noun


def test_lists_that_are_given_whole_answer_of_several_clusters(two: tuple[Cluster, Cluster]) -> None:
    alice, tenant = client_of(make_user("alice")), bound("tina", (Role.SUBMITTER, "team", "west"))
    for noun in WHOLE_LISTS:
        east, west = rows(alice, noun, "cluster=east"), rows(alice, noun, "cluster=west")
        assert {row["cluster"] for row in east} == {"east"}, noun
        assert rows(alice, noun) == east + west, noun
        assert rows(tenant, noun) == rows(tenant, noun, "cluster=west"), noun
        assert {row["cluster"] for row in rows(tenant, noun)} == {"west"}, noun
        assert tenant.get(f"/api/v1/{noun}/?cluster=east,west").status_code == 403, noun


def test_drift_and_claims_name_no_other_tenants(two: tuple[Cluster, Cluster]) -> None:
    """Who sees all of one cluster and a namespace of another reads both so, in one answer."""
    mixed = bound("mia", (Role.VIEWER, "", "east"), (Role.VIEWER, "other", "west"))
    strays = [(row["cluster"], *row["holders"]) for row in rows(mixed, "drift") if row["kind"] == "unknown-device"]
    assert strays == [("east", "team/stray"), ("east", "other/stray"), ("west",), ("west", "other/stray")]
    claims = [(row["cluster"], row["claim"]) for row in rows(mixed, "published-devices")]
    assert claims == [("east", "team/held"), ("west", "another namespace")]
    texts = [(row["cluster"], row["theirs"]["message"]) for row in rows(mixed, "shadow/differences")]
    assert sorted(set(texts)) == [("east", PREEMPTED), ("west", PREEMPTED)], "other/w0 is of a namespace of theirs"


def test_a_flavor_has_the_nodes_and_the_quota_of_its_own_cluster(two: tuple[Cluster, Cluster]) -> None:
    east, west = two
    make_cluster_queue(east, "more", {"gpu": {"cpu": 2_000}}, local_queue="more")
    DeviceAllocation.objects.filter(cluster=west).delete()
    Node.objects.filter(cluster=west).delete()
    found = {(row["cluster"], row["name"]): row for row in rows(client_of(make_user("alice")), "resource-flavors")}
    assert set(found) == {("east", "gpu"), ("east", "spot"), ("west", "gpu"), ("west", "spot")}
    [cpu] = [each for each in found["east", "gpu"]["capacity"] if each["resource"] == "cpu"]
    assert cpu["promised"] == 7_000
    assert found["west", "gpu"]["capacity"] == [], "none of its nodes is known"


def test_queues_say_what_is_used_of_their_quota(two: tuple[Cluster, Cluster]) -> None:
    held = Workload.objects.get(cluster=two[0], name="w0")
    Workload.objects.filter(pk=held.pk).update(status="Admitted", quota_reserved_at=START, admitted_at=START)
    held.pod_sets.update(flavors={"cpu": "gpu"}, resource_usage={"cpu": 3_000})
    used = {
        (row["cluster"], row["name"], cell["flavor"]): (cell["used"], cell["nominal"])
        for row in rows(client_of(make_user("alice")), "cluster-queues")
        for cell in row["usage"]
    }
    assert used["east", "main", "gpu"] == (3_000, 4_000)
    assert used["west", "main", "gpu"] == (0, 4_000)


def test_cycles_are_of_the_clusters_of_which_the_reader_sees_all(two: tuple[Cluster, Cluster]) -> None:
    for cluster in two:
        SchedulingCycle.objects.create(
            cluster=cluster, epoch=1, number=1, started_at=START, duration_seconds=1, heads=1, admitted=1, preempted=0,
            inadmissible=0,
        )  # fmt: skip
    found = rows(client_of(make_user("alice")), "scheduling-cycles")
    assert sorted(row["cluster"] for row in found) == ["east", "west"]
    mixed = bound("mia", (Role.VIEWER, "", "east"), (Role.VIEWER, "team", "west"))
    assert [row["cluster"] for row in rows(mixed, "scheduling-cycles")] == ["east"], "`*` leaves west out"
    assert mixed.get("/api/v1/scheduling-cycles/?cluster=east,west").status_code == 403, "named, it is refused"
    tenant = bound("tina", (Role.VIEWER, "team", "east"), (Role.VIEWER, "team", "west"))
    assert tenant.get("/api/v1/scheduling-cycles/?cluster=*").status_code == 403, "none is left"


def test_role_bindings_are_of_the_clusters_whose_auditor_reads_them(two: tuple[Cluster, Cluster]) -> None:
    """One that holds in every cluster is listed once."""
    alice = client_of(make_user("alice"))
    auditor = bound("otto", (Role.AUDITOR, "", "east"), (Role.VIEWER, "", "west"))

    def found(client: SchemaClient, query: str = "cluster=*") -> list[tuple[str, str]]:
        return [(row["cluster"], row["name"]) for row in rows(client, "role-bindings", query)]

    assert found(alice) == [("", "alice-binding"), ("east", "otto-0"), ("west", "otto-1")]
    assert found(alice, "cluster=west") == [("", "alice-binding"), ("west", "otto-1")]
    assert found(auditor) == [("", "alice-binding"), ("east", "otto-0")]
    assert auditor.get("/api/v1/role-bindings/?cluster=east,west").status_code == 403
    assert bound("tina", (Role.VIEWER, "", "east")).get("/api/v1/role-bindings/?cluster=*").status_code == 403


def test_the_audit_is_of_the_clusters_whose_auditor_reads_it(two: tuple[Cluster, Cluster]) -> None:
    """Of one a namespace alone; what belongs to no cluster is for auditors of a whole one, and listed once."""
    alice = client_of(make_user("alice"))
    auditor = bound("otto", (Role.AUDITOR, "", "east"), (Role.AUDITOR, "team", "west"))
    partly = bound("petra", (Role.AUDITOR, "team", "west"), (Role.VIEWER, "", "east"))
    newest = AuditRecord.objects.order_by("-id").values_list("id", flat=True).first() or 0
    for cluster in ("east", "west", ""):
        for namespace in ("team", "other", "") if cluster else ("",):
            record(AuditVerb.REFUSED, "Workload", cluster=cluster, namespace=namespace, name="w")

    def found(client: SchemaClient, query: str = "cluster=*") -> list[tuple[str, str]]:
        lines = rows(client, "audit", f"kind=workload&{query}")
        return [(row["cluster"], row["namespace"]) for row in reversed(lines) if row["id"] > newest]

    of_east = [("east", "team"), ("east", "other"), ("east", "")]
    assert found(alice) == [*of_east, ("west", "team"), ("west", "other"), ("west", ""), ("", "")]
    assert found(alice, "cluster=east") == [*of_east, ("", "")]
    assert found(auditor) == [*of_east, ("west", "team"), ("", "")]
    assert found(auditor, "cluster=west") == [("west", "team")]
    assert found(partly) == [("west", "team")]
    assert partly.get("/api/v1/audit/?cluster=east,west").status_code == 403
    assert bound("tina", (Role.VIEWER, "", "east")).get("/api/v1/audit/?cluster=*").status_code == 403

    export: Any = alice.get("/api/v1/audit/export/?cluster=*&format=csv&kind=workload")
    assert export["Content-Disposition"] == 'attachment; filename="audit.csv"'
    lines = csv.DictReader(b"".join(export.streaming_content).decode().splitlines())
    assert {line["cluster"] for line in lines if int(line["id"]) > newest} == {"east", "west", ""}


def test_shadows_are_summed_over_the_clusters_of_which_the_reader_sees_all(two: tuple[Cluster, Cluster]) -> None:
    at = timezone.now() - timedelta(hours=1)
    for cluster, agreed in zip(two, (9, 3), strict=True):
        ShadowCount.objects.create(cluster=cluster, at=at, agreed=agreed, differed=1, our_preemptions=2)
    found = client_of(make_user("alice")).get("/api/v1/shadow/?cluster=*").json()
    assert (found["agreement"], found["totals"]["agreed"], found["totals"]["our_preemptions"]) == (12 / 14, 12, 4)
    assert [(point["agreed"], point["differed"]) for point in found["points"]] == [(12, 2)], "one for the moment"
    lines = [(line["cluster"], line["agreement"], line["totals"]["agreed"]) for line in found["clusters"]]
    assert lines == [("east", 0.9, 9), ("west", 0.75, 3)]
    mixed = bound("mia", (Role.VIEWER, "", "east"), (Role.VIEWER, "team", "west"))
    assert mixed.get("/api/v1/shadow/?cluster=*").json()["totals"]["agreed"] == 9
    assert mixed.get("/api/v1/shadow/?cluster=east,west").status_code == 403


def test_a_report_is_of_what_the_reader_sees_in_each_cluster(two: tuple[Cluster, Cluster]) -> None:
    mixed = bound("mia", (Role.VIEWER, "", "east"), (Role.VIEWER, "team", "west"))
    since = {"since": (START - timedelta(days=1)).isoformat(), "until": (START + timedelta(days=1)).isoformat()}
    address = "/api/v1/reports/preemptions/"
    found = mixed.get(address, {"cluster": "*", **since, "by": ["cluster", "workload"]}).json()
    assert [row[:3] for row in found["rows"]] == [
        ["east", "other/w1", 1], ["east", "team/w0", 1], ["west", "team/w0", 1],
    ]  # fmt: skip
    assert found["totals"] == {"preemptions": 3, "lost_device_hours": 0}
    [first, *others] = [column["name"] for column in mixed.get(address, {"cluster": "*", **since}).json()["columns"]]
    assert first == "cluster"
    alone = mixed.get(address, {"cluster": "east", **since}).json()
    assert [column["name"] for column in alone["columns"]] == others
    written = mixed.get(address, {"cluster": "*", **since, "by": ["cluster"], "format": "csv"}).content.decode()
    assert [line.split(",")[:2] for line in written.split()] == [
        ["cluster", "preemptions"], ["east", "2"], ["west", "1"],
    ]  # fmt: skip
    assert mixed.get("/api/v1/reports/nothing/", {"cluster": "*"}).status_code == 404


def test_notifications_are_the_readers_own_in_each_cluster(two: tuple[Cluster, Cluster]) -> None:
    alice, tenant = client_of(make_user("alice")), bound("tina", (Role.VIEWER, "team", "west"))
    for index, cluster in enumerate(two):
        for name in ("alice", "tina"):
            user = User.objects.get(username=name)
            rule = NotificationRule.objects.create(
                user=user, cluster=cluster, event="DeviceFailed", created_at=START, webhook_url=f"https://{index}.org"
            )
            tell(rule, [Occurrence("gone", f"Of {cluster.name}", "", "/nodes")], START)
    for noun in ("notifications", "notification-rules"):
        found = rows(alice, noun)
        assert sorted(row["cluster"] for row in found) == ["east", "west"], noun
        assert found == rows(alice, noun, "cluster=east,west"), noun
        assert [row["cluster"] for row in rows(tenant, noun)] == ["west"], noun
    assert [row["title"] for row in rows(alice, "notifications")] == ["Of west", "Of east"]
    assert alice.get("/api/v1/notifications/status/?cluster=*").json()["unread"] == 2
    assert tenant.get("/api/v1/notifications/status/?cluster=*").json()["unread"] == 1
    assert alice.post("/api/v1/notifications/read/?cluster=west", {}).status_code == 204
    assert alice.get("/api/v1/notifications/status/?cluster=*").json()["unread"] == 1
    assert alice.post("/api/v1/notifications/read/?cluster=*", {}).status_code == 400, "a write is of one"


def key(row: dict[str, Any]) -> str:
    """What is of now is left out."""
    return repr({name: value for name, value in row.items() if name != "conditions"})


def test_pages_and_totals_of_several_clusters(two: tuple[Cluster, Cluster]) -> None:
    """Names are told apart by their cluster: no row is lost or shown twice where a page ends between two equal ones."""
    alice = client_of(make_user("alice"))
    for noun in LISTS:
        whole = alice.get(f"/api/v1/{noun}/?cluster=*&total=true").json()
        assert whole["total"] == len(whole["results"]), noun
        paged, after = [], ""
        while True:
            page = alice.get(f"/api/v1/{noun}/?cluster=*&limit=1{after}").json()
            paged += page["results"]
            if page["next"] is None:
                break
            after = f"&after={page['next']}"
        assert paged == whole["results"], noun


def test_a_tenant_of_one_cluster_sees_that_one(two: tuple[Cluster, Cluster]) -> None:
    tenant = bound("tina", (Role.SUBMITTER, "team", "west"))
    for noun in LISTS:
        found = rows(tenant, noun)
        assert {row["cluster"] for row in found} == {"west"}, noun
        assert found == rows(tenant, noun, "cluster=west")
        for refused in ("east", "west,east", "west,nowhere"):
            response = tenant.get(f"/api/v1/{noun}/?cluster={refused}")
            assert (response.status_code, response.json()["reason"]) == (403, "NotPermitted"), refused


def test_rights_hold_in_each_cluster(two: tuple[Cluster, Cluster]) -> None:
    """Who sees all of one cluster and a namespace of another is a tenant there, in the same answer."""
    mixed = bound("mia", (Role.VIEWER, "", "east"), (Role.VIEWER, "team", "west"))

    def keys(noun: str, name: str = "name") -> list[tuple[str, str]]:
        return sorted((row["cluster"], row[name]) for row in rows(mixed, noun))

    assert keys("workloads") == [("east", "w0"), ("east", "w1"), ("west", "w0")]
    assert keys("cluster-queues") == [("east", "hidden"), ("east", "main"), ("west", "main")]
    assert keys("decisions", "workload_name") == [("east", "w0"), ("east", "w1"), ("west", "w0")]
    holders = {(row["cluster"], one["workload"]) for row in rows(mixed, "devices") for one in row["slices"]}
    assert holders == {("east", "team/w0"), ("east", "other/w1"), ("west", "team/w0"), ("west", None)}
    texts = {(row["cluster"], row["message"], bool(row["detail"])) for row in rows(mixed, "decisions")}
    assert texts == {("east", PREEMPTED, True), ("west", "Preempted a workload (InClusterQueue)", False)}


def test_a_token_of_one_cluster_sees_that_one(two: tuple[Cluster, Cluster]) -> None:
    make_user("alice")
    token, _ = create_token(User.objects.get(username="alice"), "narrow", clusters=["west"])
    client = SchemaClient(headers={"Authorization": f"Token {token}"})
    assert {row["cluster"] for row in rows(client, "workloads")} == {"west"}
    assert client.get("/api/v1/workloads/?cluster=east,west").status_code == 403


def test_a_queue_admin_sees_below_its_cohort_in_its_cluster(two: tuple[Cluster, Cluster]) -> None:
    user = User.objects.create_user("quinn")
    RoleBinding.objects.create(name="q", username="quinn", role=Role.QUEUE_ADMIN, cohort="all", cluster=two[0])
    RoleBinding.objects.create(name="r", username="quinn", role=Role.VIEWER, namespace="nothing", cluster=two[1])
    client = client_of(user)
    assert [(row["cluster"], row["name"]) for row in rows(client, "cluster-queues")] == [
        ("east", "hidden"), ("east", "main"),
    ]  # fmt: skip
    assert {row["cluster"] for row in rows(client, "local-queues")} == {"east"}


REFUSED = (
    ("cluster=east,", 400, "Required value"),
    ("cluster=east,east", 400, "Duplicate value"),
    ("cluster=east,nowhere", 404, "There is no cluster named 'nowhere'."),
    ("cluster=*&ordering=position&cluster_queue=main", 400, "name its cluster"),
    ("cluster=*&after=bm9uZQ", 400, "is not a cursor"),
)


def test_what_names_no_clusters_is_refused(two: tuple[Cluster, Cluster]) -> None:
    alice = client_of(make_user("alice"))
    for query, status, said in REFUSED:
        response = alice.get(f"/api/v1/workloads/?{query}")
        assert response.status_code == status, query
        assert said in response.content.decode(), query


def test_what_is_of_one_cluster_says_so(two: tuple[Cluster, Cluster]) -> None:
    alice = client_of(make_user("alice"))
    asked = "east,west"
    for address in ("cohorts/tree/", "workloads/team/w0/", "fragmentation/", "resource-flavors/gpu/", "history/"):
        response = alice.get(f"/api/v1/{address}?cluster={asked}")
        assert (response.status_code, response.json()["errors"][0]["path"]) == (400, "cluster"), address
    written = alice.post(f"/api/v1/workloads/?cluster={asked}", {"namespace": "team", "name": "new", "pod_sets": []})
    assert written.status_code == 400
    assert "name one" in written.content.decode()


def test_counts_of_several_clusters(two: tuple[Cluster, Cluster]) -> None:
    tenant = bound("tina", (Role.VIEWER, "", "east"), (Role.VIEWER, "team", "west"))
    body = tenant.get("/api/v1/workloads/counts/?cluster=*&by=cluster").json()
    assert body == {"total": 3, "groups": [{"value": "east", "count": 2}, {"value": "west", "count": 1}]}


def test_the_settings_of_a_cluster_are_for_who_sees_that_cluster(two: tuple[Cluster, Cluster]) -> None:
    """Rights in the cluster that the request names said what was shown of the others."""
    Cluster.objects.update(server_url="https://api.example")
    mixed = bound("mia", (Role.VIEWER, "", "east"), (Role.VIEWER, "team", "west"))
    shown = {row["name"]: row["server_url"] for row in rows(mixed, "clusters", "cluster=east")}
    assert shown == {"east": "https://api.example", "west": ""}


def test_an_overview_has_a_line_for_each_cluster(two: tuple[Cluster, Cluster]) -> None:
    east, west = two
    Cluster.objects.filter(pk=west.pk).update(mode=ClusterMode.OBSERVE)
    Lease.objects.create(cluster=east, epoch=1, holder="host:1", renewed_at=timezone.now())
    waiting = Workload.objects.get(cluster=east, name="w1")
    Workload.objects.filter(pk=waiting.pk).update(push_sequence=2, push_error="no", updated_at=START)
    held = Workload.objects.get(cluster=east, name="w0")
    Workload.objects.filter(pk=held.pk).update(status="Admitted", quota_reserved_at=START, admitted_at=START)
    held.pod_sets.update(flavors={"cpu": "gpu"}, resource_usage={"cpu": 3_000})

    first, second = rows(client_of(make_user("alice")), "cluster-overviews", "")
    assert (first["cluster"], first["mode"], first["pending"], first["admitted"]) == ("east", "schedule", 1, 1)
    assert (first["devices"], first["devices_in_use"], first["nodes"]) == (1, 1, 1)
    assert first["scarcest"] == {"flavor": "gpu", "resource": "cpu", "nominal": 5_000, "used": 3_000}
    assert [problem["reason"] for problem in first["problems"]] == ["WatcherSilent", "PushLags", "PushRefused"]
    assert (first["push"]["unpushed"], first["push"]["refused"]) == (1, 1)
    assert first["push"]["lag_seconds"] > 60
    assert (second["cluster"], second["mode"], second["pending"]) == ("west", "observe", 2)
    assert [problem["reason"] for problem in second["problems"]] == ["WatcherSilent"]

    tenant = bound("tina", (Role.SUBMITTER, "team", "west"))
    [seen] = rows(tenant, "cluster-overviews", "")
    assert (seen["cluster"], seen["pending"]) == ("west", 1)
    assert seen["scarcest"]["nominal"] == 4_000, "the quota of queues that are not hers is not told"


@pytest.mark.django_db
def test_no_cluster_is_left_behind_the_last() -> None:
    """A cursor outlives the names of clusters: a page with none behind it is empty, where it was a server error."""
    make_cluster("east")
    west = make_cluster("west")
    alice = client_of(make_user("alice"))
    first = alice.get("/api/v1/cluster-overviews/?limit=1").json()
    assert [row["cluster"] for row in first["results"]] == ["east"]
    Cluster.objects.filter(pk=west.pk).update(name="aaa")
    behind = alice.get("/api/v1/cluster-overviews/", {"after": first["next"]})
    assert (behind.status_code, behind.json()) == (200, {"results": [], "next": None})


def test_more_clusters_are_not_more_queries(two: tuple[Cluster, Cluster]) -> None:
    """Also for a tenant, whose rights differ from cluster to cluster."""
    alice = client_of(make_user("alice"))
    places = [(Role.SUBMITTER, "team", "east"), (Role.SUBMITTER, "other", "west")]
    tenant = bound("tina", *places)

    def counts() -> dict[tuple[str, str], int]:
        found = {}
        for who, client in (("alice", alice), ("tina", tenant)):
            for noun in (*LISTS, *WHOLE_LISTS, *OWN, *REPORTS, *OTHERS, *(RECORDS if who == "alice" else ())):
                with CaptureQueriesContext(connection) as queries:
                    response = client.get(f"/api/v1/{noun}/?cluster=*")
                assert response.status_code == 200, noun
                found[who, noun] = len(queries)
        return found

    few = counts()
    for index in range(4):
        cluster = make_cluster(f"north-{index}")
        fill(cluster)
        Node.objects.create(cluster=cluster, name="only-here", created_at=START)
        RoleBinding.objects.create(
            name=f"tina-north-{index}",
            username="tina",
            role=Role.SUBMITTER,
            namespace=("team", "other")[index % 2],
            cluster=cluster,
        )
    assert counts() == few
