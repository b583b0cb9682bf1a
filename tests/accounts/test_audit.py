"""Who changed what, when and from where; in one table that nobody can change, whatever path a change takes."""

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.core.cache import cache
from django.core.management import call_command
from django.db import DatabaseError, InternalError, ProgrammingError, connection, transaction
from django.test import Client

from accounts.models import AuditRecord, Cluster, Namespace, Role, RoleBinding
from accounts.services.audit import forget_audit, write_unsent
from accounts.services.tokens import create_token
from queues.admin.history import edits_of
from queues.models import Workload
from tests import manifest_texts as texts
from tests.api_client import SchemaClient
from tests.factories import make_cluster_queue, make_node, make_workload
from tests.users import EPOCH, make_user

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def start(live_services: None) -> Iterator[None]:
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def first() -> int:
    """Records of this test have larger ids: nothing can empty the table between tests."""
    newest = AuditRecord.objects.first()
    return newest.id if newest else 0


@pytest.fixture
def place(first: int) -> Cluster:
    cluster = Cluster.objects.create(name="default")
    for name in ("team-a", "team-b"):
        Namespace.objects.create(cluster=cluster, name=name, created_at=EPOCH)
    make_cluster_queue(cluster, "research")
    return cluster


def tool(name: str, token_name: str = "laptop") -> SchemaClient:
    """A client with a token, as tools have it."""
    user = User.objects.filter(username=name).first() or make_user(name)
    client = SchemaClient()
    client.credentials(
        HTTP_AUTHORIZATION=f"Bearer {create_token(user, token_name)[0]}",
        HTTP_USER_AGENT="curl/8",
        HTTP_X_AUDIT_REASON="ticket 7",
        HTTP_X_REQUEST_ID="req-1",
        REMOTE_ADDR="10.1.2.3",
    )
    return client


def records(**filters: Any) -> list[AuditRecord]:
    return list(AuditRecord.objects.filter(**filters).order_by("id"))


def newest() -> int:
    found = AuditRecord.objects.first()
    assert found is not None
    return found.id


def test_an_edit_of_a_quota_says_who_where_why_and_from_what_to_what(place: Cluster) -> None:
    client = tool("alice")
    start = newest()
    body = client.get("/api/v1/cluster-queues/research/").json()
    body["resource_groups"][0]["flavors"][0]["resources"][0]["nominal_quota"] = 20
    answer = client.put(
        "/api/v1/cluster-queues/research/",
        {"resource_groups": body["resource_groups"], "labels": {"a": "b"}},
        format="json",
        headers={"If-Match": "*"},
    )
    assert answer.status_code == 200, answer.json()
    assert answer.headers["X-Request-ID"] == "req-1"
    (row,) = records(id__gt=start)
    assert (row.username, row.credential, row.address) == ("alice", "token laptop", "10.1.2.3")
    assert (row.user_agent, row.reason, row.request_id) == ("curl/8", "ticket 7", "req-1")
    assert (row.verb, row.kind, row.cluster_name, row.name) == ("update", "ClusterQueue", "default", "research")
    assert row.request == "PUT /api/v1/cluster-queues/research/"
    assert row.before is not None
    assert row.after is not None
    (cell,) = row.before["quotas"].values()
    (changed,) = row.after["quotas"].values()
    assert cell["nominal_quota"] != changed["nominal_quota"]
    assert row.after["labels"] == {"a": "b"}


def test_what_changes_nothing_is_not_recorded(place: Cluster) -> None:
    client = tool("alice")
    body = client.get("/api/v1/cluster-queues/research/").json()
    start = newest()
    same = {"resource_groups": body["resource_groups"]}
    anyway = {"If-Match": "*"}
    client.put("/api/v1/cluster-queues/research/", same, format="json", headers=anyway)
    first_edit = len(records(id__gt=start))
    assert client.put("/api/v1/cluster-queues/research/", same, format="json", headers=anyway).status_code == 200
    assert len(records(id__gt=start)) == first_edit


def test_the_next_request_on_the_connection_is_not_the_last_ones(place: Cluster) -> None:
    assert tool("alice").delete("/api/v1/cluster-queues/research/").status_code in (204, 409)
    start = newest()
    Namespace.objects.create(cluster=place, name="by-nobody", created_at=EPOCH)
    (row,) = records(id__gt=start)
    assert (row.username, row.request, row.address) == ("", "", "")
    assert "database account" in row.process


def test_sql_and_commands_are_recorded_with_their_process(place: Cluster) -> None:
    start = newest()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE queues_flavorquota SET nominal_quota = 99")
    user = make_user("bob")
    call_command("shell", "--no-imports", "--command", "pass", verbosity=0)
    user.set_password("a-new-long-secret")
    user.save()
    rows = records(id__gt=start)
    assert [(row.verb, row.kind, row.name) for row in rows] == [
        ("update", "ClusterQueue", "research"),
        ("create", "User", "bob"),
        ("create", "RoleBinding", "bob-binding"),
        ("update", "User", "bob"),
    ]
    assert rows[-1].after == {"password": "***"}
    assert all(row.process and not row.username for row in rows)
    assert "pbkdf2" not in json.dumps([row.after for row in rows]) + json.dumps([row.before for row in rows])


def test_tokens_are_recorded_and_their_secrets_are_not(place: Cluster) -> None:
    start = newest()
    user = make_user("bob")
    token, details = create_token(user, "ci")
    details.token.delete()
    lines = [(row.verb, row.kind, row.name) for row in records(id__gt=start, kind="Token")]
    assert lines == [("create", "Token", "bob/ci"), ("delete", "Token", "bob/ci")]
    said = "".join(str(vars(row)) for row in records(id__gt=start))
    assert token not in said
    assert details.token_id not in said


def test_credentials_in_addresses_are_hidden(place: Cluster) -> None:
    start = newest()
    Cluster.objects.filter(pk=place.pk).update(telemetry_urls=["http://me:secret@10.0.0.7/metrics"])
    (row,) = records(id__gt=start)
    assert row.after == {"telemetry_urls": ["http://***@10.0.0.7/metrics"]}


def test_submissions_changes_and_ends_of_workloads_are_recorded(place: Cluster) -> None:
    client = tool("bob")
    start = newest()
    body = {
        "namespace": "team-a",
        "name": "w",
        "local_queue": "research-local",
        "pod_sets": [{"count": 1, "requests": {"cpu": "1"}}],
    }
    assert client.post("/api/v1/workloads/", body, format="json").status_code == 201
    assert client.post("/api/v1/workloads/hold/", {"workloads": ["team-a/w"]}, format="json").status_code in (200, 400)
    assert client.delete("/api/v1/workloads/team-a/w/").status_code in (200, 202, 204)
    rows = records(id__gt=start, kind="Workload")
    assert rows[0].verb == "create"
    assert rows[-1].verb == "delete"
    assert {(row.username, row.namespace, row.name) for row in rows} == {("bob", "team-a", "w")}


def test_a_requeue_is_recorded_and_its_end_is_not(place: Cluster) -> None:
    workload = make_workload(place, "w", namespace="team-a", queue_name="research-local")
    Workload.objects.update(quota_reserved_at=workload.created_at, status="QuotaReserved")
    client = tool("alice")
    start = newest()
    assert client.post("/api/v1/workloads/team-a/w/requeue/").status_code == 200
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL kueueweb.unnoticed = 'on'")  # as the scheduler writes
        Workload.objects.update(requeue_requested_by="")
    [row] = records(id__gt=start)
    assert (row.username, row.verb, row.kind, row.name) == ("alice", "update", "Workload", "w")
    assert (row.before, row.after) == ({"requeue_requested_by": ""}, {"requeue_requested_by": "alice"})


def test_workloads_that_are_submitted_together_are_one_line_for_each_namespace(place: Cluster) -> None:
    client = tool("alice")
    start = newest()

    def workload(namespace: str, name: str) -> dict[str, Any]:
        pod_sets = [{"count": 1, "requests": {"cpu": "1"}}]
        common = {"local_queue": "research-local", "pod_sets": pod_sets, "labels": {"of": "sweep"}}
        return {"namespace": namespace, "name": name, "priority": len(name), **common}

    body = [workload("team-a", "w-1"), workload("team-b", "alone"), workload("team-a", "w-20")]
    assert client.post("/api/v1/workloads/", body, format="json").status_code == 201
    together, alone = sorted(records(id__gt=start), key=lambda row: row.namespace)
    assert (together.verb, together.kind, together.cluster_name) == ("create", "Workload", "default")
    assert (together.namespace, together.name, together.username) == ("team-a", "", "alice")
    assert together.after == {
        "count": 2, "names": ["w-1", "w-20"], "queue_name": "research-local", "priority_class_name": "",
        "labels": {"of": "sweep"}, "status": "Pending", "submitted_by": "alice",
    }, "fields that all share, without the priority"  # fmt: skip
    assert (alone.namespace, alone.name) == ("team-b", "alone")
    assert alone.after is not None
    assert alone.after["priority"] == 5
    for query in (
        "name=w-20", "search=W-2", "name=w-20&kind=workload&namespace=team-a", "name=other,w-20",
        "name=w-20&kind=Token,workload", "name=w-20&verb=delete,create",
    ):  # fmt: skip
        listed = client.get(f"/api/v1/audit/?{query}").json()["results"]
        assert [row["id"] for row in listed if row["id"] > start] == [together.id], query
    assert [edit.verb for edit in edits_of("Workload", "default", "team-a", "w-20")][-1] == "create"


def test_jobs_that_are_applied_together_are_one_line(place: Cluster) -> None:
    client = tool("alice")
    start = newest()
    text = texts.joined(*(texts.job(f"train-{number}") for number in range(3)))
    answer = client.post("/api/v1/manifests/", text, content_type="application/yaml")
    assert answer.status_code == 200, answer.json()
    (row,) = records(id__gt=start, kind__in=("Job", "Workload"))
    assert (row.verb, row.kind, row.name) == ("create", "Job", "")
    assert row.after is not None
    assert (row.after["count"], row.after["names"]) == (3, ["train-0", "train-1", "train-2"])


def test_what_our_own_workers_do_is_not_recorded(place: Cluster) -> None:
    node = make_node(place, "n")
    start = newest()
    with connection.cursor() as cursor:
        cursor.execute("SET application_name = 'kueueweb service celery worker scheduler'")
        cursor.execute("UPDATE gpus_node SET cordoned = true")
        cursor.execute("SET application_name = 'psql'")
        assert records(id__gt=start) == []
        cursor.execute("UPDATE gpus_node SET cordoned = false")
        cursor.execute("RESET application_name")
    (row,) = records(id__gt=start)
    assert (row.kind, row.name, row.before, row.after) == ("Node", node.name, {"cordoned": True}, {"cordoned": False})


def test_logins_failed_logins_and_logouts_are_recorded(place: Cluster) -> None:
    make_user("bob")
    start = newest()
    client = SchemaClient()
    assert client.post("/api/v1/auth/login/", {"username": "bob", "password": "wrong"}).status_code == 401
    assert client.post("/api/v1/auth/login/", {"username": "bob", "password": "bob-secret"}).status_code == 200
    assert client.post("/api/v1/auth/logout/").status_code == 204
    rows = records(id__gt=start)
    assert [(row.verb, row.kind, row.name) for row in rows] == [
        ("failed-login", "Session", "bob"),
        ("login", "Session", "bob"),
        ("logout", "Session", "bob"),
    ]
    assert rows[0].username == ""
    assert rows[1].username == "bob"
    assert "wrong" not in "".join(str(vars(row)) for row in rows)


def test_refused_attempts_are_recorded_writes_always_and_reads_once_a_minute(place: Cluster) -> None:
    client = tool("bob")
    start = newest()
    for _ in range(2):
        assert client.delete("/api/v1/cluster-queues/research/").status_code == 403
        assert client.get("/api/v1/audit/").status_code == 403
    rows = records(id__gt=start)
    assert [(row.verb, row.request.split()[0], row.username) for row in rows] == [
        ("refused", "DELETE", "bob"),
        ("refused", "GET", "bob"),
        ("refused", "DELETE", "bob"),
    ]
    assert "may not" in rows[0].message
    assert rows[0].name == "research"
    assert {row.cluster_name for row in rows} == {"default"}, "what is asked without a name is that cluster's"


def test_a_refusal_is_read_by_those_who_audit_the_cluster_that_was_asked(place: Cluster) -> None:
    west = Cluster.objects.create(name="west")
    RoleBinding.objects.create(name="wes", cluster=west, username="wes", role=Role.ADMIN)
    start = newest()
    assert tool("bob").delete("/api/v1/cluster-queues/research/").status_code == 403
    assert tool("bob").patch("/api/v1/clusters/default/", {"mode": "observe"}, format="json").status_code == 403
    listed = tool("wes").get("/api/v1/audit/?cluster=west&verb=refused").json()["results"]
    assert [row for row in listed if row["id"] > start] == []
    listed = tool("alice").get("/api/v1/audit/?verb=refused").json()["results"]
    assert [row["request"].split()[0] for row in listed if row["id"] > start] == ["PATCH", "DELETE"]


def test_a_refusal_of_several_clusters_is_listed(place: Cluster) -> None:
    """It was recorded as of a cluster named `*`, whose audit nobody reads."""
    Cluster.objects.create(name="west")
    start = newest()
    for asked in ("*", "default,west"):
        cache.clear()
        assert tool("bob").get(f"/api/v1/audit/?cluster={asked}").status_code == 403
    listed = tool("alice").get("/api/v1/audit/?verb=refused").json()["results"]
    assert [row["cluster"] for row in listed if row["id"] > start] == ["", ""]


def test_the_admin_is_recorded(place: Cluster) -> None:
    boss = User.objects.create_superuser("boss", password="boss-secret")
    client = Client()
    client.force_login(boss)
    start = newest()
    made = client.post("/admin/auth/group/add/", {"name": "physics"})
    assert made.status_code == 302
    (row,) = records(id__gt=start, kind="Group")
    assert (row.username, row.credential, row.name) == ("boss", "session", "physics")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE accounts_auditrecord SET username = 'x'",
        "DELETE FROM accounts_auditrecord",
        "TRUNCATE accounts_auditrecord",
        "SET LOCAL kueueweb.forget_audit_before = '2999-01-01'; DELETE FROM accounts_auditrecord",
    ],
)
def test_the_audit_cannot_be_changed(place: Cluster, statement: str) -> None:
    with (
        pytest.raises((InternalError, ProgrammingError, DatabaseError), match="audit cannot be changed"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)


def test_only_the_retention_forgets(place: Cluster) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO accounts_auditrecord (at, verb, kind, name) "
            "VALUES (now() - interval '500 days', 'create', 'Cluster', 'ancient')"
        )
    there = AuditRecord.objects.count()
    assert forget_audit(400) == 1
    assert AuditRecord.objects.count() == there - 1
    assert records(name="ancient") == []


def export(client: SchemaClient, query: str) -> bytes:
    answer: Any = client.get(f"/api/v1/audit/export/?{query}")
    return b"".join(answer.streaming_content)


def test_an_admin_reads_filters_pages_and_exports(place: Cluster) -> None:
    client = tool("alice")
    start = newest()
    for name in ("=cmd()", "g2"):
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO auth_group (name) VALUES (%s)", [name])
    page = client.get("/api/v1/audit/?kind=group&limit=1").json()
    assert [row["name"] for row in page["results"]] == ["g2"]
    following = client.get(f"/api/v1/audit/?kind=group&limit=1&after={page['next']}").json()
    assert [row["name"] for row in following["results"]] == ["=cmd()"]
    assert following["results"][0]["id"] > start
    lines = export(client, "kind=Group&verb=create&name=g2")
    assert json.loads(lines.splitlines()[0])["after"] == {"name": "g2"}
    table = export(client, "format=csv&kind=Group").decode()
    assert [row["name"] for row in csv.DictReader(io.StringIO(table))][:2] == ["g2", "'=cmd()"]


def test_the_log_has_each_line_once_as_json(place: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    while write_unsent():
        continue
    make_user("bob")
    caplog.clear()
    assert write_unsent() == 2
    assert write_unsent() == 0
    found = [json.loads(entry.getMessage()) for entry in caplog.records if entry.name == "kueueweb.audit"]
    assert [(line["kind"], line["name"]) for line in found] == [("User", "bob"), ("RoleBinding", "bob-binding")]


UNRECORDED = {
    "accounts_auditfinding": "what the auditor of the books finds",
    "accounts_auditrecord": "the audit itself",
    "accounts_keptanswer": "what a recorded write was answered",
    "accounts_managedfields": "which client made a recorded write",
    "accounts_serviceaccount": "recorded as the user that it is",
    "auth_permission": "made by migrations",
    "django_admin_log": "the admin's own log",
    "django_content_type": "made by migrations",
    "django_session": "logins and log-outs are recorded",
    "gpus_containersample": "measured",
    "gpus_deviceallocation": "decided, or found in the cluster",
    "gpus_devicesample": "measured",
    "queues_mirroredchange": "what another scheduler did, until the shadow has heard it",
    **dict.fromkeys(
        (
            "history_countsample",
            "history_devicesample",
            "history_quotasample",
            "history_subject",
            "history_workloadsample",
        ),
        "measured",
    ),
    "scheduler_shadowcount": "measured",
    "scheduler_shadowdifference": "what the shadow finds",
    "history_checkpoint": "what was, itself a record",
    "history_rowchange": "what undoes changes until the next checkpoint",
    "history_usagerecord": "what was used, itself a record",
    "knox_authtoken": "recorded as accounts_tokendetails, which has its name",
    "queues_flavorquota": "recorded with the ClusterQueue or Cohort",
    "queues_clusterobject": "found in the cluster",
    "notifications_delivery": "what is on its way to a user",
    "notifications_notification": "what a user was told, itself a record",
    "notifications_scan": "how far the search for news has come",
    "studio_question": "what a user asks and is told, which changes nothing",
    "queues_startestimate": "estimated",
    "studio_estimateround": "how far the estimates are",
    "studio_keptestimate": "estimated",
    "queues_pod": "found in the cluster",
    "queues_podset": "made with its workload, and changed with its job",
    "queues_resourcegroup": "recorded with the ClusterQueue or Cohort",
    "queues_servedobject": "what was written to the cluster of an object that is recorded",
    "queues_workloadevent": "what happened to a workload, itself a record",
    "scheduler_change": "notes for the engine",
    "scheduler_decision": "decided",
    "scheduler_lease": "who leads",
    "scheduler_metriccount": "counted where it happens",
    "scheduler_schedulingcycle": "decided",
}


def test_every_table_is_recorded_or_says_why_not() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT DISTINCT tgrelid::regclass::text FROM pg_trigger WHERE tgname LIKE 'kueueweb_audit%'")
        recorded = {row[0] for row in cursor.fetchall()}
    tables = {model._meta.db_table for model in apps.get_models(include_auto_created=True)}
    assert tables - recorded == set(UNRECORDED)
