"""Workloads over REST: submission whole or not at all, lists, detail, events; each within the user's namespaces."""

from datetime import timedelta
from typing import Any

import pytest

from accounts.api.warning_header import MAX_WARNINGS
from accounts.models import Cluster
from queues.models import LocalQueue, Pod, PodSet, PriorityClass, Workload, WorkloadPriorityClass
from tests.api_client import SchemaClient
from tests.users import EPOCH

URL = "/api/v1/workloads/"


def workload(name: str, namespace: str = "team-a", **fields: Any) -> dict[str, Any]:
    return {
        "namespace": namespace,
        "name": name,
        "local_queue": "main",
        "pod_sets": [{"count": 2, "requests": {"cpu": "500m", "memory": "2Gi", "nvidia.com/gpu": "1"}}],
        **fields,
    }


JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "train", "namespace": "team-a", "labels": {"kueue.x-k8s.io/queue-name": "main"}},
    "spec": {
        "parallelism": 3,
        "template": {
            "spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}],
            }
        },
    },
}


@pytest.fixture
def local_queue(cluster: Cluster) -> LocalQueue:
    return LocalQueue.objects.create(
        cluster=cluster, namespace="team-a", name="main", cluster_queue_name="research", created_at=EPOCH
    )


def names(response: Any) -> list[str]:
    return [row["name"] for row in response.json()["results"]]


def test_one_workload(bob: SchemaClient, local_queue: LocalQueue) -> None:
    response = bob.post(URL, workload("train"))
    assert response.status_code == 201
    assert response.json()["workloads"][0]["name"] == "train"

    body = bob.get(f"{URL}team-a/train/").json()
    assert (body["status"], body["cluster_queue"], body["submitted_by"]) == ("Pending", "research", "bob")
    assert body["pod_sets"][0]["requests"] == {"cpu": "500m", "memory": "2Gi", "nvidia.com/gpu": "1"}
    assert body["pod_sets"][0]["count"] == 2
    assert body["queued_at"] == body["created_at"]
    assert body["conditions"] == body["devices"] == []
    template = Workload.objects.get().pod_sets.get().template
    assert template["spec"]["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "1"}


@pytest.mark.parametrize("query", ["", "?dry_run=true"])
def test_a_queue_that_does_not_exist_is_a_warning(bob: SchemaClient, local_queue: LocalQueue, query: str) -> None:
    assert "Warning" not in bob.post(f"{URL}{query}", workload("there")).headers
    mixed = [workload("a", local_queue="none"), workload("b", local_queue="none"), workload("c"), {**JOB}]
    answer = bob.post(f"{URL}{query}", mixed)
    text = "LocalQueue none doesn't exist in namespace team-a: no workload starts until it does"
    assert (answer.status_code, answer.headers["Warning"]) == (201, f'299 - "{text}"')
    assert Workload.objects.exists() is not bool(query)
    many = bob.post(f"{URL}{query}", [workload(f"m-{number}", local_queue=f"none-{number}") for number in range(50)])
    assert many.headers["Warning"].count("299 - ") == MAX_WARNINGS + 1
    assert many.headers["Warning"].endswith('299 - "30 more warnings"')


def test_a_thousand_in_one_request(bob: SchemaClient) -> None:
    response = bob.post(URL, [workload(f"w-{index}") for index in range(1000)])
    assert response.status_code == 201
    assert [created["name"] for created in response.json()["workloads"]] == [f"w-{index}" for index in range(1000)]
    assert Workload.objects.count() == 1000


def test_a_malformed_one_among_a_thousand_names_itself(bob: SchemaClient) -> None:
    documents = [workload(f"w-{index}") for index in range(1000)]
    documents[417]["pod_sets"][0]["requests"]["memory"] = "lots"
    documents[901]["pod_set"] = []
    response = bob.post(URL, documents)
    assert response.status_code == 400
    body = response.json()
    assert body["reason"] == "InvalidManifest"
    assert [(error["document"], error["path"], error["value"]) for error in body["errors"]] == [
        (417, "pod_sets[0].requests.memory", "lots"),
        (901, "pod_set", "[]"),
    ]
    assert "pod_sets" in body["errors"][1]["remedy"]
    assert not Workload.objects.exists()


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"name": "Not_A_Name"}, "name"),
        ({"name": ""}, "name"),
        ({"namespace": 7}, "namespace"),
        ({"priority": "high"}, "priority"),
        ({"priority": 2**31}, "priority"),
        ({"generate_name": "x-"}, "generate_name"),
        ({"pod_sets": []}, "pod_sets"),
        ({"pod_sets": [{"requests": {"pods": 1}}]}, "pod_sets[0].requests.pods"),
        ({"pod_sets": [{"requests": {"cpu": "-1"}}]}, "pod_sets[0].requests.cpu"),
        ({"pod_sets": [{"count": 1, "min_count": 2, "requests": {}}]}, "pod_sets[0].min_count"),
        ({"pod_sets": [{"requests": {}}, {"requests": {}}]}, "pod_sets[1].name"),
        ({"pod_sets": [{"requests": {}, "template": {"spec": {"containers": []}}}]}, "pod_sets[0].requests"),
        ({"pod_sets": [{"requests": {}, "node_selector": {"a": 1}}]}, "pod_sets[0].node_selector[a]"),
        ({"pod_sets": [{"requests": {}, "topology_request": {"wide": "x"}}]}, "pod_sets[0].topology_request.wide"),
        ({"pod_sets": [{"template": {"spec": {"containers": 1}}}]}, "pod_sets[0].template.spec.containers"),
        ({"priority_class": "gone"}, "priority_class"),
        ({"maximum_execution_seconds": 0}, "maximum_execution_seconds"),
        ({"labels": {"-": "x"}}, "labels[-]"),
    ],
)
def test_says_where_the_mistake_is(bob: SchemaClient, fields: dict[str, Any], path: str) -> None:
    response = bob.post(URL, {**workload("train"), **fields})
    assert response.status_code == 400
    assert path in [error["path"] for error in response.json()["errors"]]


def test_topology_request(bob: SchemaClient) -> None:
    request = {
        "required": "cloud.com/rack",
        "pod_set_slice_required_topology": "cloud.com/host",
        "pod_set_slice_size": 2,
    }
    pod_set = {"count": 4, "requests": {"cpu": 1}, "topology_request": request}
    assert bob.post(URL, workload("train", pod_sets=[pod_set])).status_code == 201
    assert Workload.objects.get().pod_sets.get().topology_request == {
        "required": "cloud.com/rack",
        "podSetSliceRequiredTopology": "cloud.com/host",
        "podSetSliceSize": 2,
    }
    assert bob.get(f"{URL}team-a/train/").json()["pod_sets"][0]["topology_request"] == request


def test_a_job_manifest(bob: SchemaClient) -> None:
    assert bob.post(URL, [JOB, workload("plain")]).status_code == 201
    row = Workload.objects.get(job__isnull=False)
    assert row.pod_sets.get().count == 3
    body = bob.get(f"{URL}team-a/{row.name}/").json()
    assert body["owner"] == {"kind": "Job", "name": "train"}
    again = bob.post(URL, JOB)
    assert again.status_code == 409
    assert again.json()["reason"] == "AlreadyExists"
    assert [error["value"] for error in again.json()["errors"]] == ["team-a/train"]


def test_a_job_manifest_in_yaml(bob: SchemaClient) -> None:
    manifest = """
apiVersion: batch/v1
kind: Job
metadata: {generateName: sweep-, namespace: team-a, labels: {kueue.x-k8s.io/queue-name: main}}
spec:
  template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}
"""
    response = bob.post(URL, f"{manifest}---{manifest}".encode(), content_type="application/yaml")
    assert response.status_code == 201
    assert Workload.objects.count() == 2
    hostile = bob.post(URL, b"a: !!python/object:os.system x", content_type="application/yaml")
    assert (hostile.status_code, hostile.json()["reason"]) == (400, "HostileManifest")


def test_priorities(alice: SchemaClient, bob: SchemaClient, cluster: Cluster) -> None:
    WorkloadPriorityClass.objects.create(cluster=cluster, name="high", value=1000, created_at=EPOCH)
    PriorityClass.objects.create(cluster=cluster, name="usual", value=10, global_default=True, created_at=EPOCH)
    bob.post(URL, [workload("a", priority_class="high"), workload("b")])
    alice.post(URL, workload("c", priority=5))  # a number is an admin's
    rows = bob.get(URL, {"ordering": "id"}).json()["results"]
    assert [(row["priority"], row["priority_class"]) for row in rows] == [(1000, "high"), (10, "usual"), (5, "")]


def test_only_in_bound_namespaces(bob: SchemaClient, charlie: SchemaClient, alice: SchemaClient) -> None:
    refused = bob.post(URL, [workload("a"), workload("b", "team-b"), workload("c", never_preempt=True)])
    assert refused.status_code == 403
    assert [error["document"] for error in refused.json()["errors"]] == [1, 2]
    assert not Workload.objects.exists()
    assert alice.post(URL, [workload("a"), workload("b", "team-b", never_preempt=True)]).status_code == 201

    assert names(bob.get(URL)) == ["a"]
    assert names(charlie.get(URL)) == ["b"]
    assert names(alice.get(URL)) == ["b", "a"]
    assert bob.get(URL, {"namespace": "team-b"}).json()["results"] == []
    assert bob.get(f"{URL}team-b/b/").status_code == 404
    assert bob.get(f"{URL}team-b/b/events/").status_code == 404
    assert bob.delete(f"{URL}team-b/b/").status_code == 404


def test_a_viewer_looks_and_touches_nothing(vera: SchemaClient, alice: SchemaClient) -> None:
    alice.post(URL, workload("a"))
    assert names(vera.get(URL)) == ["a"]
    for response in (vera.post(URL, workload("b")), vera.delete(f"{URL}team-a/a/"), vera.post(f"{URL}team-a/a/hold/")):
        assert (response.status_code, response.json()["reason"]) == (403, "NotPermitted")


def test_without_a_role(nobody: SchemaClient, db: None) -> None:
    assert (nobody.get(URL).status_code, nobody.get(URL).json()["reason"]) == (403, "NotPermitted")
    visitor = SchemaClient()
    assert (visitor.get(URL).status_code, visitor.get(URL).json()["reason"]) == (401, "NotAuthenticated")


def test_pages_hold_still_while_rows_come(alice: SchemaClient) -> None:
    alice.post(URL, [workload(f"w-{index}") for index in range(5)])
    first = alice.get(URL, {"limit": 2}).json()
    alice.post(URL, workload("new"))
    second = alice.get(URL, {"limit": 2, "after": first["next"]}).json()
    third = alice.get(URL, {"limit": 2, "after": second["next"]}).json()
    pages = [[row["name"] for row in page["results"]] for page in (first, second, third)]
    assert pages == [["w-4", "w-3"], ["w-2", "w-1"], ["w-0"]]
    assert third["next"] is None


@pytest.mark.parametrize(
    "parameters",
    [
        {"limit": "0"},
        {"limit": "many"},
        {"limit": "9" * 40},
        {"after": "x"},
        {"after": "bm90IGpzb24"},
        {"after": "WyJhIl0"},
        {"ordering": "colour"},
        {"ordering": "position"},
        {"ordering": "position", "cluster_queue": "q", "after": "-1"},
        {"ordering": "position", "cluster_queue": "q", "reason": "Deactivated"},
        {"ordering": "position", "cluster_queue": "q", "since": "2026-01-01T00:00:00Z"},
        {"status": "Nothing"},
        {"active": "perhaps"},
    ],
)
def test_refuses_parameters_that_are_none(alice: SchemaClient, parameters: dict[str, str]) -> None:
    response = alice.get(URL, parameters)
    assert (response.status_code, response.json()["reason"]) == (400, "Invalid")


def test_filters(alice: SchemaClient, local_queue: LocalQueue) -> None:
    alice.post(URL, [workload("train-a"), workload("serve", "team-b", local_queue="other"), workload("train-b")])
    Workload.objects.filter(name="train-b").update(status="Admitted", active=False)
    assert names(alice.get(URL, {"search": "TRAIN"})) == ["train-b", "train-a"]
    assert names(alice.get(URL, {"search": "am-b/se"})) == ["serve"]
    assert names(alice.get(URL, {"status": "Admitted"})) == ["train-b"]
    assert names(alice.get(URL, {"status": "Admitted,Pending", "namespace": "team-a"})) == ["train-b", "train-a"]
    assert names(alice.get(URL, {"cluster_queue": "research"})) == ["train-b", "train-a"]
    assert names(alice.get(URL, {"local_queue": "other"})) == ["serve"]
    assert names(alice.get(URL, {"active": "false"})) == ["train-b"]


def test_filters_take_several_values(alice: SchemaClient, local_queue: LocalQueue) -> None:
    alice.post(URL, [workload("train-a"), workload("serve", "team-b"), workload("train-b")])
    Workload.objects.filter(name="train-b").update(cluster_queue_name="b", reason="Preempted")
    assert names(alice.get(URL, {"namespace": "team-b"})) == ["serve"]
    assert names(alice.get(URL, {"namespace": "team-a,team-b"})) == ["train-b", "serve", "train-a"]
    assert names(alice.get(URL, {"namespace": "team-b, absent"})) == ["serve"]
    assert names(alice.get(URL, {"cluster_queue": "b,absent", "reason": "Admitted,Preempted"})) == ["train-b"]
    assert names(alice.get(URL, {"submitted_by": "absent,other"})) == []
    answer = alice.get(URL, {"ordering": "position", "cluster_queue": "research,b"})
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["path"] == "cluster_queue"


def test_filters_by_what_it_runs_on_and_asks_for(alice: SchemaClient, local_queue: LocalQueue) -> None:
    """Node, resource, label and time, in the list and in the counts."""
    alice.post(URL, [workload("train"), workload("serve"), workload("old")])
    Workload.objects.filter(name="old").update(created_at=EPOCH)
    Workload.objects.filter(name="train").update(labels={"team": "vision", "tier": "1"})
    train = Workload.objects.get(name="train")
    for replica, phase in enumerate(("Running", "Running", "Succeeded")):
        Pod.objects.create(
            workload=train, pod_set="main", replica=replica, namespace="team-a", name=f"p{replica}", uid=f"p{replica}",
            phase=phase, node_name="n2" if phase == "Succeeded" else "n1",
        )  # fmt: skip
    PodSet.objects.filter(workload__name="serve").update(requests={"cpu": 1, "example.com/x": 1})
    assert names(alice.get(URL, {"node": "n1"})) == ["train"]
    assert names(alice.get(URL, {"node": "n2"})) == []
    assert names(alice.get(URL, {"node": "n2,n1"})) == ["train"]
    assert names(alice.get(URL, {"resource": "example.com/x"})) == ["serve"]
    assert names(alice.get(URL, {"resource": "absent,example.com/x"})) == ["serve"]
    assert names(alice.get(URL, {"label": "team"})) == ["train"]
    assert names(alice.get(URL, {"label": "team=vision"})) == ["train"]
    assert names(alice.get(URL, {"label": "team=speech"})) == []
    assert names(alice.get(URL, {"until": "2026-01-05T09:00:01Z"})) == ["old"]
    assert names(alice.get(URL, {"since": "2026-01-05T09:00:01Z"})) == ["serve", "train"]
    assert alice.get(f"{URL}counts/", {"node": "n1"}).json()["total"] == 1


LABELS = {"a": {"team": "vision", "tier": "1"}, "b": {"team": "vision-lab", "example.com/x": "y"}, "c": {"1": ""}}


def test_labels_match_a_selector(alice: SchemaClient, local_queue: LocalQueue) -> None:
    """Match types, in the list and in the counts."""
    alice.post(URL, [workload(name) for name in reversed(LABELS)])
    for name, labels in LABELS.items():
        Workload.objects.filter(name=name).update(labels=labels)
    for selector, expected in (
        ("team", "ab"),
        ("!team", "c"),
        ("team=vision", "a"),
        ("team==vision", "a"),
        ("team != vision", "bc"),
        ("team^=vision", "ab"),
        ("team*=n-l", "b"),
        ("example.com/x=y", "b"),
        ("team in (vision, speech)", "a"),
        ("team notin (vision,speech)", "bc"),
        ("team^=vis,tier notin (2,3),!1", "ab"),
        ("1=", "c"),
        ("1^=", "c"),
        ("tier*=_", ""),
    ):
        assert names(alice.get(URL, {"label": selector})) == list(expected), selector
        assert alice.get(f"{URL}counts/", {"label": selector}).json()["total"] == len(expected), selector


def test_what_is_no_selector_is_refused(alice: SchemaClient) -> None:
    for selector, rule in (
        ("team=two words", "cannot be read as a label selector"),
        ("team=-x", "must be letters, digits"),
        ("=x", "cannot be read as a label selector"),
        ("team in vision", "cannot be read as a label selector"),
        ("team,", "cannot be read as a label selector"),
        (",".join("abcdefghijk"), "Too many: 11 requirements; at most 10 are allowed."),
        ("," * 2_049, "Too long: 2049 characters; at most 2048 are allowed."),
    ):
        response = alice.get(URL, {"label": selector})
        assert response.status_code == 400, selector
        found = response.json()["errors"][0]
        assert found["path"] == "label"
        assert rule in found["rule"]


def test_named_workloads(alice: SchemaClient, local_queue: LocalQueue) -> None:
    """As a page asks for the rows that the live stream named: those that its other filters still let through."""
    alice.post(URL, [workload("a"), workload("b"), workload("c")])
    Workload.objects.filter(name="b").update(status="Admitted")

    def found(**filters: str) -> list[str]:
        return sorted(row["name"] for row in alice.get(URL, filters).json()["results"])

    named = "team-a/a, team-a/b,elsewhere/c,team-a/gone"
    assert found(names=named) == ["a", "b"]
    assert found(names=named, status="Admitted") == ["b"]
    for names, rule in (
        ("a", "'a' is not the name of a workload. Write namespace/name."),
        ("team/", "is not the name of a workload"),
        (",", "is not the name of a workload"),
        (",".join(["a/b"] * 101), "Too many: 101 names; at most 100 are allowed."),
    ):
        response = alice.get(URL, {"names": names})
        assert response.status_code == 400, names
        mistake = response.json()["errors"][0]
        assert mistake["path"] == "names"
        assert rule in mistake["rule"]


def test_rows_have_the_annotations_that_are_asked_for(alice: SchemaClient, local_queue: LocalQueue) -> None:
    """Columns of the list: some values, never all annotations of a row, and no query more."""
    alice.post(URL, [workload("a"), workload("b")])
    Workload.objects.filter(name="a").update(annotations={"example.com/cost": "7", "note": "", "1": "one", "z": "z"})
    for place in ({}, {"cluster_queue": "research", "ordering": "position"}):
        asked = {**place, "annotations": "example.com/cost,note,1,note"}
        found = {row["name"]: row["annotations"] for row in alice.get(URL, asked).json()["results"]}
        assert found == {"a": {"example.com/cost": "7", "note": "", "1": "one"}, "b": {}}
    assert "annotations" not in alice.get(URL).json()["results"][0]
    for keys, rule in (("a b", "is not an annotation key"), (",".join("abcdefghijk"), "Too many: 11 keys")):
        response = alice.get(URL, {"annotations": keys})
        assert response.status_code == 400
        assert response.json()["errors"][0]["path"] == "annotations"
        assert rule in response.json()["errors"][0]["rule"]


def test_filters_by_when_it_was_admitted_and_ended(alice: SchemaClient, local_queue: LocalQueue) -> None:
    """Ranges of time, their beginning within and their end not, in the list and in the counts."""
    alice.post(URL, [workload("early"), workload("late"), workload("waits")])
    hour = timedelta(hours=1)
    Workload.objects.filter(name="early").update(admitted_at=EPOCH, finished_at=EPOCH + hour)
    Workload.objects.filter(name="late").update(admitted_at=EPOCH + hour)
    nine, ten, eleven = "2026-01-05T09:00:00Z", "2026-01-05T10:00:00Z", "2026-01-05T11:00:00Z"
    for asked, expected in (
        ({"admitted_since": nine}, ["late", "early"]),
        ({"admitted_since": nine, "admitted_until": ten}, ["early"]),
        ({"admitted_since": ten}, ["late"]),
        ({"admitted_since": "2026-01-05T12:00:00+02:00"}, ["late"]),
        ({"finished_since": ten, "finished_until": eleven}, ["early"]),
        ({"finished_until": ten}, []),
        ({"admitted_since": nine, "finished_since": ten, "search": "ear"}, ["early"]),
    ):
        assert names(alice.get(URL, asked)) == expected, asked
        assert alice.get(f"{URL}counts/", asked).json()["total"] == len(expected), asked


@pytest.mark.parametrize("address", [URL, f"{URL}counts/"])
@pytest.mark.parametrize("prefix", ["", "admitted_", "finished_"])
def test_refuses_ranges_that_are_none(alice: SchemaClient, prefix: str, address: str) -> None:
    reversed_ = {f"{prefix}since": "2026-01-05T10:00:00Z", f"{prefix}until": "2026-01-05T09:00:00Z"}
    malformed = {f"{prefix}until": "yesterday"}
    for asked, name, rule in (
        (reversed_, "since", f"2026-01-05T10:00:00+00:00 is not before {prefix}until, 2026-01-05T09:00:00+00:00."),
        (malformed, "until", "must be an RFC 3339 time"),
    ):
        response = alice.get(address, asked)
        assert response.status_code == 400
        error = response.json()["errors"][0]
        assert (error["path"], error["rule"]) == (f"{prefix}{name}", rule)


@pytest.mark.parametrize(
    ("ordering", "expected"),
    [
        ("name", ["a", "b", "c", "d"]),
        ("-name", ["d", "c", "b", "a"]),
        ("priority", ["c", "d", "a", "b"]),
        ("-priority", ["b", "d", "a", "c"]),
        ("id", ["b", "a", "c", "d"]),
        ("cluster_queue", ["d", "c", "a", "b"]),
        ("-submitted_by", ["d", "c", "a", "b"]),
        ("reason", ["d", "c", "a", "b"]),
    ],
)
def test_orders_hold_over_pages(
    alice: SchemaClient, local_queue: LocalQueue, ordering: str, expected: list[str]
) -> None:
    """Sorted by a column; of equal ones the newest first."""
    alice.post(URL, [workload("b", priority=9), workload("a", priority=1), workload("c"), workload("d", priority=1)])
    found, after = [], ""
    while True:
        page = alice.get(URL, {"ordering": ordering, "limit": "1", **({"after": after} if after else {})}).json()
        found += [row["name"] for row in page["results"]]
        if page["next"] is None:
            break
        after = page["next"]
    assert found == expected


def test_the_order_of_a_queue(alice: SchemaClient, bob: SchemaClient, cluster: Cluster) -> None:
    for namespace in ("team-a", "team-b"):
        LocalQueue.objects.create(
            cluster=cluster, namespace=namespace, name="main", cluster_queue_name="research", created_at=EPOCH
        )
    alice.post(
        URL,
        [workload("low"), workload("foreign", "team-b", priority=9), workload("high", priority=5), workload("last")],
    )
    Workload.objects.filter(name="last").update(created_at=EPOCH)
    parameters = {"ordering": "position", "cluster_queue": "research"}
    rows = alice.get(URL, parameters).json()["results"]
    assert [(row["position"], row["name"]) for row in rows] == [(1, "foreign"), (2, "high"), (3, "last"), (4, "low")]
    rows = bob.get(URL, parameters).json()["results"]
    assert [(row["position"], row["name"]) for row in rows] == [(2, "high"), (3, "last"), (4, "low")]
    page = bob.get(URL, {**parameters, "limit": "2"}).json()
    assert (page["next"], len(page["results"])) == ("3", 2)
    rows = bob.get(URL, {**parameters, "after": "3", "search": "L"}).json()["results"]
    assert [row["name"] for row in rows] == ["low"]


def test_events_outlive_the_workload(bob: SchemaClient, charlie: SchemaClient) -> None:
    uid = bob.post(URL, workload("train")).json()["workloads"][0]["uid"]
    bob.post(f"{URL}team-a/train/hold/")
    events = bob.get(f"{URL}team-a/train/events/").json()["results"]
    assert [(event["reason"], event["actor"]) for event in events] == [("Held", "bob"), ("Created", "bob")]
    assert bob.delete(f"{URL}team-a/train/").status_code == 204
    assert bob.get(f"{URL}team-a/train/events/").status_code == 404
    kept = bob.get(f"{URL}team-a/train/events/", {"uid": uid}).json()["results"]
    assert [event["reason"] for event in kept] == ["Deleted", "Finished", "Held", "Created"]
    assert charlie.get(f"{URL}team-b/train/events/", {"uid": uid}).json()["results"] == []
    assert bob.get(f"{URL}team-a/train/events/", {"uid": "x"}).status_code == 400


def test_another_cluster(alice: SchemaClient) -> None:
    response = alice.get(URL, {"cluster": "nowhere"})
    assert (response.status_code, response.json()["reason"]) == (404, "NotFound")


@pytest.mark.parametrize(
    ("body", "content_type", "status", "reason"),
    [
        (b"{", "application/json", 400, "Malformed"),
        (b'{"name": "\\u0000"}', "application/json", 400, "Malformed"),
        (b"[]", "application/json", 400, "Invalid"),
        (b"[7]", "application/json", 400, "InvalidManifest"),
        (b"null", "application/json", 400, "InvalidManifest"),
        (b"\xff", "application/yaml", 400, "InvalidManifest"),
        (b"x", "text/plain", 415, "UnsupportedMediaType"),
    ],
)
def test_bodies_that_are_none(bob: SchemaClient, body: bytes, content_type: str, status: int, reason: str) -> None:
    response = bob.post(URL, body, content_type=content_type)
    assert (response.status_code, response.json()["reason"]) == (status, reason)


def test_methods_that_are_none(bob: SchemaClient) -> None:
    response = bob.put(URL, {})
    assert (response.status_code, response.json()["reason"]) == (405, "MethodNotAllowed")
