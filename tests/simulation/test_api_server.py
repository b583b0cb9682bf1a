"""The verbs of the API: identity, conflicts, deletion, lists, discovery, and errors as Status objects."""

from __future__ import annotations

import pytest

from simulation.api.api_server import Answer
from simulation.api.resources import CRDS, RESOURCES, crd_of
from tests.simulated_cluster import JOBS, NODES, PODS, Api, job, make_simulated, pod

CONTAINER = {"name": "c", "image": "busybox"}


@pytest.fixture
def api() -> Api:
    return Api(make_simulated())


def test_discovery_names_every_kind_with_its_subresources(api: Api) -> None:
    assert api.get("/version")["major"] == "1"
    assert [group["name"] for group in api.get("/apis")["groups"]] == [
        "admissionregistration.k8s.io",
        "apps",
        "autoscaling.x-k8s.io",
        "apiextensions.k8s.io",
        "batch",
        "coordination.k8s.io",
        "resource.k8s.io",
        "node.k8s.io",
        "scheduling.k8s.io",
    ]
    for kind in ("PyTorchJob", "MPIJob"):
        api.create(
            f"/apis/apiextensions.k8s.io/v1/{CRDS}",
            crd_of(next(resource for resource in RESOURCES if resource.kind == kind)),
        )
    versions = [entry["version"] for entry in api.get("/apis/kubeflow.org")["versions"]]
    assert versions == ["v1", "v2beta1"]
    core = {resource["name"] for resource in api.get("/api/v1")["resources"]}
    assert {"pods", "pods/binding", "pods/eviction", "pods/status", "nodes", "namespaces"} <= core
    batch = {resource["name"] for resource in api.get("/apis/batch/v1")["resources"]}
    assert batch == {"jobs", "jobs/status", "cronjobs", "cronjobs/status"}


def test_a_created_object_gets_uid_version_and_time(api: Api) -> None:
    created = api.create(JOBS, job(suspend=True))
    metadata = created["metadata"]
    assert metadata["uid"]
    assert metadata["generation"] == 1
    assert metadata["creationTimestamp"] == "2023-11-14T22:13:20Z"
    assert int(api.get(f"{JOBS}/train")["metadata"]["resourceVersion"]) >= int(metadata["resourceVersion"])


def test_the_same_name_twice_is_already_exists(api: Api) -> None:
    api.create(JOBS, job(suspend=True))
    answer = api.call("POST", JOBS, job(suspend=True))
    assert (answer.code, answer.body["reason"], answer.body["kind"]) == (409, "AlreadyExists", "Status")


def test_generate_name_makes_names_that_differ(api: Api) -> None:
    body = job(suspend=True)
    body["metadata"] = {"generateName": "run-"}
    names = {api.create(JOBS, body)["metadata"]["name"] for _ in range(20)}
    assert len(names) == 20
    assert all(name.startswith("run-") and len(name) == 9 for name in names)


@pytest.mark.parametrize(
    ("path", "code", "reason"),
    [
        ("/api/v1/namespaces/default/pods/none", 404, "NotFound"),
        ("/api/v1/namespaces/default/gadgets", 404, "NotFound"),
        ("/apis/batch/v2/jobs", 404, "NotFound"),
        ("/nothing", 404, "NotFound"),
    ],
)
def test_what_is_not_there_is_not_found(api: Api, path: str, code: int, reason: str) -> None:
    answer = api.call("GET", path)
    assert (answer.code, answer.body["reason"]) == (code, reason)


def test_a_missing_namespace_refuses_what_it_should_hold(api: Api) -> None:
    answer = api.call("POST", "/apis/batch/v1/namespaces/nowhere/jobs", {"metadata": {"name": "a"}, "spec": {}})
    assert answer.code == 404
    assert answer.body["details"] == {"name": "nowhere", "kind": "namespaces"}


def test_an_old_version_conflicts(api: Api) -> None:
    created = api.create(JOBS, job(suspend=True))
    api.patch(f"{JOBS}/train", {"metadata": {"labels": {"a": "b"}}})
    answer = api.call("PUT", f"{JOBS}/train", {**created, "metadata": {**created["metadata"], "labels": {"a": "c"}}})
    assert (answer.code, answer.body["reason"]) == (409, "Conflict")
    stale = {"metadata": {"resourceVersion": created["metadata"]["resourceVersion"], "labels": {"a": "c"}}}
    assert api.call("PATCH", f"{JOBS}/train", stale, "application/merge-patch+json").code == 409


def test_a_patch_for_another_uid_conflicts(api: Api) -> None:
    api.create(PODS, pod(schedulerName="nobody"))
    patch = {"metadata": {"uid": "another", "labels": {"a": "b"}}}
    assert api.call("PATCH", f"{PODS}/worker", patch, "application/merge-patch+json").code == 409


def test_a_write_that_changes_nothing_keeps_the_version(api: Api) -> None:
    api.create(JOBS, job(suspend=True))
    before = api.get(f"{JOBS}/train")["metadata"]["resourceVersion"]
    api.patch(f"{JOBS}/train", {"spec": {"suspend": True}})
    assert api.get(f"{JOBS}/train")["metadata"]["resourceVersion"] == before


def test_the_generation_counts_changes_of_the_spec_only(api: Api) -> None:
    api.create(JOBS, job(suspend=True, parallelism=1))
    assert api.patch(f"{JOBS}/train", {"metadata": {"labels": {"a": "b"}}})["metadata"]["generation"] == 1
    assert api.patch(f"{JOBS}/train", {"spec": {"parallelism": 2}})["metadata"]["generation"] == 2


def test_a_running_jobs_template_is_immutable_and_a_suspended_ones_directives_are_not(api: Api) -> None:
    api.create(JOBS, job(suspend=True))
    selector = {"spec": {"template": {"spec": {"nodeSelector": {"zone": "gpu-zone-a"}}}}}
    api.patch(f"{JOBS}/train", selector)
    api.patch(f"{JOBS}/train", {"spec": {"suspend": False}})
    other = {"spec": {"template": {"spec": {"nodeSelector": {"zone": "elsewhere"}}}}}
    answer = api.call("PATCH", f"{JOBS}/train", other, "application/merge-patch+json")
    assert (answer.code, answer.body["details"]["causes"][0]["field"]) == (422, "spec.template")
    image = {"spec": {"suspend": True, "template": {"spec": {"containers": [{"name": "main", "image": "other"}]}}}}
    assert api.call("PATCH", f"{JOBS}/train", image, "application/merge-patch+json").code == 422


def test_a_stopped_jobs_directives_change_once_its_start_time_is_reset(api: Api) -> None:
    api.create(JOBS, job())
    api.patch(f"{JOBS}/train", {"spec": {"suspend": True}})
    other = {"spec": {"template": {"spec": {"nodeSelector": {"zone": "gpu-zone-a"}}}}}
    assert api.call("PATCH", f"{JOBS}/train", other, "application/merge-patch+json").code == 422
    api.call("PATCH", f"{JOBS}/train/status", {"status": {"startTime": None}}, "application/merge-patch+json")
    assert api.call("PATCH", f"{JOBS}/train", other, "application/merge-patch+json").code == 200


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (pod("Bad_Name"), "metadata.name"),
        (pod(containers=[]), "spec.containers"),
        ({**pod(), "metadata": {"name": "a", "labels": {"x": "y" * 64}}}, "metadata.labels[x]"),
        (pod(requests={"nvidia.com/gpu": "1"}, limits={"nvidia.com/gpu": "2"}), None),
        (pod(restartPolicy="NaN"), "spec.restartPolicy"),
        (pod(containers=[{"name": "c"}]), "spec.containers[0].image"),
        (pod(containers=[{**CONTAINER, "imagePullPolicy": "Sometimes"}]), "spec.containers[0].imagePullPolicy"),
        (
            pod(containers=[{**CONTAINER, "volumeMounts": [{"name": "data", "mountPath": "/data"}]}]),
            "spec.containers[0].volumeMounts[0].name",
        ),
        (pod(initContainers=[{"name": "first"}]), "spec.initContainers[0].image"),
    ],
)
def test_what_breaks_a_rule_is_invalid_and_names_the_field(
    api: Api, body: dict[str, object], field: str | None
) -> None:
    answer = api.call("POST", PODS, body)
    assert (answer.code, answer.body["reason"]) == (422, "Invalid")
    if field:
        assert answer.body["details"]["causes"][0]["field"] == field


def test_a_restart_policy_of_another_type_cannot_be_decoded(api: Api) -> None:
    answer = api.call("POST", PODS, pod(restartPolicy=5))
    assert (answer.code, answer.body["reason"]) == (400, "BadRequest")
    assert "spec.restartPolicy of type string" in answer.body["message"]


def test_a_mount_of_a_volume_that_is_there_is_taken(api: Api) -> None:
    mounting = {**CONTAINER, "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    api.create(PODS, pod(containers=[mounting], volumes=[{"name": "data", "emptyDir": {}}]))


def test_label_values_are_limited_to_63_characters(api: Api) -> None:
    api.create(PODS, pod(schedulerName="nobody"))
    patch = {"metadata": {"labels": {"hami.io/vgpu-node": "n" * 64}}}
    assert api.call("PATCH", f"{PODS}/worker", patch, "application/merge-patch+json").code == 422


def test_binding_sets_the_node_once(api: Api) -> None:
    created = api.create(PODS, pod(schedulerName="ours"))
    binding = {"metadata": {"uid": created["metadata"]["uid"]}, "target": {"kind": "Node", "name": "node-01"}}
    assert api.call("POST", f"{PODS}/worker/binding", binding).code == 201
    assert api.get(f"{PODS}/worker")["spec"]["nodeName"] == "node-01"
    again = api.call("POST", f"{PODS}/worker/binding", {"target": {"name": "node-02"}})
    assert (again.code, "already assigned" in again.body["message"]) == (409, True)


def test_binding_another_uid_or_a_gated_pod_is_refused(api: Api) -> None:
    api.create(PODS, pod(schedulingGates=[{"name": "wait"}]))
    answer = api.call("POST", f"{PODS}/worker/binding", {"metadata": {"uid": "x"}, "target": {"name": "node-01"}})
    assert answer.code == 409
    assert api.call("POST", f"{PODS}/worker/binding", {"target": {"name": "node-01"}}).code == 400


def test_gates_may_go_and_never_come(api: Api) -> None:
    api.create(PODS, pod(schedulingGates=[{"name": "wait"}]))
    more = {"spec": {"schedulingGates": [{"name": "wait"}, {"name": "longer"}]}}
    assert api.call("PATCH", f"{PODS}/worker", more, "application/merge-patch+json").code == 422
    api.patch(f"{PODS}/worker", {"spec": {"schedulingGates": []}})
    assert api.get(f"{PODS}/worker")["spec"]["nodeName"] == "node-01"


def test_lists_come_in_pages(api: Api) -> None:
    for number in range(5):
        api.create(JOBS, job(f"job-{number}", suspend=True))
    first = api.get(JOBS, limit="2")
    second = api.get(JOBS, limit="2", **{"continue": first["metadata"]["continue"]})
    third = api.get(JOBS, limit="2", **{"continue": second["metadata"]["continue"]})
    names = [item["metadata"]["name"] for page in (first, second, third) for item in page["items"]]
    assert names == [f"job-{number}" for number in range(5)]
    assert "continue" not in third["metadata"]
    assert first["metadata"]["resourceVersion"] == third["metadata"]["resourceVersion"]


def test_a_page_of_a_forgotten_version_is_gone(api: Api) -> None:
    for number in range(3):
        api.create(JOBS, job(f"job-{number}", suspend=True))
    token = api.get(JOBS, limit="1")["metadata"]["continue"]
    api.create(JOBS, job("later", suspend=True))
    api.cluster.store.compact()
    answer = api.call("GET", JOBS, limit="1", **{"continue": token})
    assert (answer.code, answer.body["reason"]) == (410, "Expired")


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("team=a", ["a"]),
        ("team!=a", ["b", "c"]),
        ("team in (a, b)", ["a", "b"]),
        ("team notin (a)", ["b", "c"]),
        ("team", ["a", "b"]),
        ("!team", ["c"]),
        ("team=a,tier", []),
    ],
)
def test_label_selectors(api: Api, selector: str, expected: list[str]) -> None:
    for name, labels in (("a", {"team": "a"}), ("b", {"team": "b"}), ("c", {})):
        body = job(name, suspend=True)
        body["metadata"]["labels"] = labels
        api.create(JOBS, body)
    assert api.names(JOBS, labelSelector=selector) == expected


def test_field_selectors(api: Api) -> None:
    api.create(PODS, pod("bound"))
    api.create(PODS, pod("waiting", schedulerName="ours"))
    assert api.names(PODS, fieldSelector="spec.nodeName=") == ["waiting"]
    assert api.names(PODS, fieldSelector="spec.schedulerName!=ours") == ["bound"]
    assert api.names(PODS, fieldSelector="metadata.name=bound,status.phase!=Failed") == ["bound"]
    assert api.call("GET", PODS, fieldSelector="spec.color=red").code == 400


def test_a_pod_that_runs_nowhere_is_deleted_at_once_and_a_bound_one_after_it_has_stopped(api: Api) -> None:
    api.create(PODS, pod("waiting", schedulerName="ours"))
    api.create(PODS, pod("bound"))
    api.cluster.advance(5)
    assert api.call("DELETE", f"{PODS}/waiting").code == 200
    assert api.call("DELETE", f"{PODS}/bound").body["metadata"]["deletionGracePeriodSeconds"] == 30
    assert api.names(PODS) == ["bound"]
    api.cluster.advance(2)
    assert api.names(PODS) == []


def test_a_finalizer_holds_what_is_deleted(api: Api) -> None:
    body = job(suspend=True)
    body["metadata"]["finalizers"] = ["example.com/hold"]
    api.create(JOBS, body)
    api.call("DELETE", f"{JOBS}/train")
    assert api.get(f"{JOBS}/train")["metadata"]["deletionTimestamp"]
    api.patch(f"{JOBS}/train", {"metadata": {"finalizers": None}})
    assert api.names(JOBS) == []


def test_preconditions_of_a_deletion(api: Api) -> None:
    api.create(JOBS, job(suspend=True))
    assert api.call("DELETE", f"{JOBS}/train", {"preconditions": {"uid": "another"}}).code == 409
    assert api.names(JOBS) == ["train"]


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_a_jobs_pods_go_with_it(api: Api, propagation: str) -> None:
    api.create(JOBS, job(parallelism=2, completions=2))
    api.cluster.advance(5)
    assert api.phases() == ["Running", "Running"]
    api.call("DELETE", f"{JOBS}/train", {"propagationPolicy": propagation})
    api.cluster.advance(5)
    assert api.pods() == []
    assert api.names(JOBS) == []


def test_orphans_stay(api: Api) -> None:
    api.create(JOBS, job())
    api.call("DELETE", f"{JOBS}/train", propagationPolicy="Orphan")
    api.cluster.advance(5)
    assert api.phases() == ["Running"]
    assert not api.pods()[0]["metadata"].get("ownerReferences")


def test_a_namespace_takes_all_it_holds_along(api: Api) -> None:
    api.create("/api/v1/namespaces", {"metadata": {"name": "team"}})
    body = job()
    body["metadata"]["namespace"] = "team"
    api.create("/apis/batch/v1/namespaces/team/jobs", body)
    api.cluster.advance(5)
    api.call("DELETE", "/api/v1/namespaces/team")
    refused = api.call("POST", "/api/v1/namespaces/team/pods", {**pod(), "metadata": {"name": "late"}})
    assert refused.code == 403
    api.cluster.advance(10)
    assert "team" not in api.names("/api/v1/namespaces")
    assert api.pods() == []


def test_a_dry_run_stores_nothing(api: Api) -> None:
    assert api.call("POST", JOBS, job(), dryRun="All").code == 201
    assert api.call("DELETE", f"{NODES}/node-01", dryRun="All").code == 200
    assert (api.names(JOBS), api.names(NODES)) == ([], ["node-01", "node-02"])


def test_the_status_is_written_through_its_subresource_only(api: Api) -> None:
    node = api.get(f"{NODES}/node-01")
    node["status"]["phase"] = "changed"
    node["metadata"]["labels"]["via"] = "object"
    answer: Answer = api.call("PUT", f"{NODES}/node-01", node)
    assert "phase" not in answer.body["status"]
    assert answer.body["metadata"]["labels"]["via"] == "object"
    status = {"status": {**node["status"], "phase": "changed"}}
    api.call("PATCH", f"{NODES}/node-01/status", status, "application/merge-patch+json")
    assert api.get(f"{NODES}/node-01")["status"]["phase"] == "changed"


def test_unreadable_requests_are_bad_requests(api: Api) -> None:
    assert api.call("GET", JOBS, limit="many").code == 400
    assert api.call("POST", JOBS, ["no object"]).code == 400
    assert api.call("PATCH", f"{NODES}/node-01", {}, "text/plain").code == 415
    assert api.call("POST", JOBS, {**job(), "kind": "Pod"}).code == 400
    assert api.call("PUT", JOBS, job()).code == 405
