"""Server-side apply, `kubectl apply` and the other patches, in Kubernetes' wire format."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any, Final

import pytest
import yaml
from django.utils import timezone
from rest_framework.test import APIClient

from accounts.models import Cluster, ManagedFields
from clusters.manifests import apply_manifests
from queues.models import ClusterQueue, Job, LocalQueue
from scheduler.housekeeping.managed_fields import forget_lost_managers
from scheduling.manifest.metadata import LAST_APPLIED
from tests.kueueweb.wire.test_writes import JOBS, KUEUE, MERGE, QUEUE, job, local_queue, refused, send

APPLY: Final = "application/apply-patch+yaml"
JSON_PATCH: Final = "application/json-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"


def applied(client: APIClient, path: str, manifest: dict[str, Any], manager: str = "argo", more: str = "") -> Any:
    return client.generic("PATCH", f"{path}?fieldManager={manager}{more}", yaml.safe_dump(manifest), content_type=APPLY)


def queue(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": "research"},
        "spec": spec,
    }


def test_an_apply_makes_the_object_and_names_its_manager(bob: APIClient, queues: Cluster) -> None:
    manifest = {**job(), "metadata": {"name": "made", "labels": {"kueue.x-k8s.io/queue-name": "main"}}}
    made = applied(bob, f"{JOBS}/made", manifest)
    assert made.status_code == 201, made.content
    [entry] = made.json()["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"], entry["apiVersion"]) == ("argo", "Apply", "batch/v1")
    assert entry["fieldsV1"]["f:metadata"] == {"f:labels": {"f:kueue.x-k8s.io/queue-name": {}}}
    again = applied(bob, f"{JOBS}/made", manifest)
    assert again.status_code == 200
    assert again.json()["metadata"]["resourceVersion"] == made.json()["metadata"]["resourceVersion"]
    assert Job.objects.count() == 1


def test_a_field_that_is_left_out_goes_and_others_stay(alice: APIClient, queues: Cluster) -> None:
    first = applied(alice, QUEUE, queue(stopPolicy="Hold", queueingStrategy="StrictFIFO"))
    assert first.status_code == 200, first.content
    found = applied(alice, QUEUE, queue(queueingStrategy="StrictFIFO")).json()
    assert (found["spec"].get("stopPolicy", "None"), found["spec"]["queueingStrategy"]) == ("None", "StrictFIFO")
    assert found["spec"]["cohortName"] == "company"
    assert found["metadata"]["labels"] == {"tier": "gold"}


def test_another_managers_field_is_a_conflict_unless_forced(alice: APIClient, queues: Cluster) -> None:
    applied(alice, QUEUE, queue(stopPolicy="Hold", queueingStrategy="StrictFIFO"), "argo")
    same = applied(alice, QUEUE, queue(stopPolicy="Hold"), "terraform")
    assert same.status_code == 200, same.content
    refusal = applied(alice, QUEUE, queue(stopPolicy="HoldAndDrain"), "terraform")
    assert refused(refusal) == (409, "Conflict")
    [cause] = refusal.json()["details"]["causes"]
    assert cause == {
        "reason": "FieldManagerConflict", "message": 'conflict with "argo"', "field": ".spec.stopPolicy",
    }  # fmt: skip
    assert ClusterQueue.objects.get().stop_policy == "Hold"
    forced = applied(alice, QUEUE, queue(stopPolicy="HoldAndDrain"), "terraform", "&force=true").json()
    fields = {entry["manager"]: entry["fieldsV1"] for entry in forced["metadata"]["managedFields"]}
    assert fields["argo"] == {"f:spec": {"f:queueingStrategy": {}}}
    assert fields["terraform"] == {"f:spec": {"f:stopPolicy": {}}}


def test_a_change_by_another_road_is_a_conflict(alice: APIClient, queues: Cluster) -> None:
    applied(alice, QUEUE, queue(stopPolicy="Hold"))
    send(alice, "PATCH", QUEUE, {"spec": {"stopPolicy": "None"}}, MERGE)
    refusal = applied(alice, QUEUE, queue(stopPolicy="Hold"))
    assert refused(refusal) == (409, "Conflict")
    assert refusal.json()["details"]["causes"][0]["message"] == 'conflict with "kueueweb"'
    assert applied(alice, QUEUE, queue(stopPolicy="Hold"), more="&force=true").status_code == 200


def test_a_default_is_a_value(alice: APIClient, queues: Cluster) -> None:
    made = applied(alice, QUEUE, queue(stopPolicy="None")).json()
    assert made["metadata"]["managedFields"][0]["fieldsV1"] == {"f:spec": {"f:stopPolicy": {}}}
    assert refused(applied(alice, QUEUE, queue(stopPolicy="Hold"), "terraform")) == (409, "Conflict")
    assert applied(alice, QUEUE, queue(stopPolicy="Hold")).status_code == 200
    assert refused(applied(alice, QUEUE, queue(stopPolicy="None"), "terraform")) == (409, "Conflict")


def test_quantities_are_compared_as_amounts(alice: APIClient, queues: Cluster) -> None:
    def quota(amount: str) -> dict[str, Any]:
        flavor = {"name": "on-demand", "resources": [{"name": "cpu", "nominalQuota": amount}]}
        return queue(resourceGroups=[{"coveredResources": ["cpu"], "flavors": [flavor]}])

    assert applied(alice, QUEUE, quota("5000m")).status_code == 200
    assert applied(alice, QUEUE, quota("5"), "terraform").status_code == 200
    assert refused(applied(alice, QUEUE, quota("6"), "terraform")) == (409, "Conflict")


def test_the_older_version_applies_its_own_words(alice: APIClient, queues: Cluster) -> None:
    old = QUEUE.replace("v1beta2", "v1beta1")
    manifest = {**queue(cohort="other"), "apiVersion": "kueue.x-k8s.io/v1beta1"}
    assert applied(alice, old, manifest).json()["spec"]["cohort"] == "other"
    assert applied(alice, QUEUE, queue(cohortName="third")).json()["spec"]["cohortName"] == "third"


def test_an_apply_is_checked_as_every_write(
    alice: APIClient, bob: APIClient, charlie: APIClient, queues: Cluster
) -> None:
    assert refused(alice.generic("PATCH", QUEUE, yaml.safe_dump(queue()), content_type=APPLY)) == (422, "Invalid")
    assert refused(applied(bob, QUEUE, queue(stopPolicy="Hold"))) == (403, "Forbidden")
    assert refused(applied(charlie, f"{JOBS}/made", job())) == (403, "Forbidden")
    assert refused(applied(alice, QUEUE, queue(stopPolicy="Perhaps"))) == (422, "Invalid")
    stale = {**queue(stopPolicy="Hold"), "metadata": {"name": "research", "resourceVersion": "1"}}
    assert refused(applied(alice, QUEUE, stale)) == (409, "Conflict")
    gone = {**queue(), "metadata": {"name": "none", "uid": "00000000-0000-0000-0000-000000000000"}}
    assert refused(applied(alice, f"{KUEUE}/clusterqueues/none", gone)) == (409, "Conflict")
    dry = applied(alice, QUEUE, queue(stopPolicy="Hold"), more="&dryRun=All").json()
    assert dry["spec"]["stopPolicy"] == "Hold"
    assert ClusterQueue.objects.get().stop_policy == "None"
    assert not ManagedFields.objects.exists()


def test_kubectls_annotation_is_kept_and_read(alice: APIClient, bob: APIClient, queues: Cluster) -> None:
    text = json.dumps(local_queue())
    manifest = local_queue()
    manifest["metadata"]["annotations"] = {LAST_APPLIED: text}
    path = f"{KUEUE}/namespaces/team-a/localqueues/more"
    made = send(alice, "POST", f"{KUEUE}/namespaces/team-a/localqueues", manifest)
    assert made.json()["metadata"]["annotations"] == {LAST_APPLIED: text}
    assert bob.get(path).json()["metadata"]["annotations"] == {LAST_APPLIED: text}
    changed = send(alice, "PATCH", path, {"metadata": {"annotations": {LAST_APPLIED: "{}", "a": "b"}}}, MERGE).json()
    assert changed["metadata"]["annotations"] == {LAST_APPLIED: "{}", "a": "b"}
    plain = send(alice, "PATCH", path, {"metadata": {"annotations": {LAST_APPLIED: None}}}, MERGE).json()
    assert plain["metadata"]["annotations"] == {"a": "b"}
    long = {"metadata": {"annotations": {LAST_APPLIED: "x" * 262145}}}
    assert refused(send(alice, "PATCH", path, long, MERGE)) == (422, "Invalid")


def test_kubectl_takes_over_what_it_had_applied(alice: APIClient, queues: Cluster) -> None:
    before = json.dumps(queue(stopPolicy="Hold", queueingStrategy="StrictFIFO"))
    patch = {"metadata": {"annotations": {LAST_APPLIED: before}}, "spec": json.loads(before)["spec"]}
    assert send(alice, "PATCH", QUEUE, patch, MERGE).status_code == 200
    found = applied(alice, QUEUE, queue(stopPolicy="Hold"), "kubectl").json()
    assert found["spec"].get("queueingStrategy", "BestEffortFIFO") == "BestEffortFIFO"
    assert json.loads(found["metadata"]["annotations"][LAST_APPLIED])["spec"] == {"stopPolicy": "Hold"}


def test_a_strategic_patch_merges_containers(bob: APIClient, queues: Cluster) -> None:
    send(bob, "POST", JOBS, job())
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "busybox:2"}]}}}}
    answer = send(bob, "PATCH", f"{JOBS}/made", patch, STRATEGIC)
    assert answer.status_code == 200, answer.content
    [container] = answer.json()["spec"]["template"]["spec"]["containers"]
    assert (container["image"], container["resources"]) == ("busybox:2", {"requests": {"cpu": "1"}})
    assert refused(send(bob, "PATCH", f"{JOBS}/made", {"spec": {"$patch": "perhaps"}}, STRATEGIC)) == (
        400,
        "BadRequest",
    )


def test_json_patch(alice: APIClient, queues: Cluster) -> None:
    operations: list[dict[str, Any]] = [
        {"op": "test", "path": "/spec/cohortName", "value": "company"},
        {"op": "add", "path": "/metadata/labels/area", "value": "ml"},
        {"op": "add", "path": "/spec/stopPolicy", "value": "Hold"},
    ]
    answer = send(alice, "PATCH", QUEUE, operations, JSON_PATCH)
    assert answer.status_code == 200, answer.content
    found = answer.json()
    assert (found["metadata"]["labels"]["area"], found["spec"]["stopPolicy"]) == ("ml", "Hold")
    failing = [{"op": "test", "path": "/spec/cohortName", "value": "other"}, {"op": "remove", "path": "/spec"}]
    assert refused(send(alice, "PATCH", QUEUE, failing, JSON_PATCH)) == (422, "Invalid")
    for wrong in (
        [{"op": "remove", "path": "/none"}],
        [{"op": "perhaps", "path": "/spec"}],
        [{"path": "/spec"}],
        [{"op": "copy", "path": "/x"}],
    ):
        assert refused(send(alice, "PATCH", QUEUE, wrong, JSON_PATCH)) == (422, "Invalid"), wrong
    assert refused(send(alice, "PATCH", QUEUE, {}, JSON_PATCH)) == (400, "BadRequest")
    stale = [{"op": "replace", "path": "/metadata/resourceVersion", "value": "1"}]
    assert refused(send(alice, "PATCH", QUEUE, stale, JSON_PATCH)) == (409, "Conflict")


def test_a_json_patch_does_not_grow_without_bound(alice: APIClient, queues: Cluster) -> None:
    doubling = [{"op": "copy", "from": "/spec", "path": f"/spec/{number}"} for number in range(60)]
    assert refused(send(alice, "PATCH", QUEUE, doubling, JSON_PATCH)) == (413, "RequestEntityTooLarge")
    many = [{"op": "test", "path": "/kind", "value": "ClusterQueue"}] * 10_001
    assert refused(send(alice, "PATCH", QUEUE, many, JSON_PATCH)) == (413, "RequestEntityTooLarge")


def test_what_is_too_deep_is_refused(alice: APIClient, queues: Cluster) -> None:
    deeper = [{"op": "add", "path": "/spec" + "/a" * depth, "value": {}} for depth in range(1, 400)]
    assert refused(send(alice, "PATCH", QUEUE, deeper, JSON_PATCH)) == (422, "Invalid")
    text = '{"spec":' * 5_000 + "1" + "}" * 5_000
    assert send(alice, "PATCH", QUEUE, {"metadata": {"annotations": {LAST_APPLIED: text}}}, MERGE).status_code == 200
    assert applied(alice, QUEUE, queue(stopPolicy="Hold"), "kubectl").status_code == 200


def test_an_object_has_so_many_managers_and_no_more(alice: APIClient, queues: Cluster) -> None:
    applied(alice, QUEUE, queue(stopPolicy="Hold"), "first")
    row = ManagedFields.objects.get()
    for number in range(99):
        row.pk, row.manager = None, f"manager-{number}"
        row.save()
    assert refused(applied(alice, QUEUE, queue(stopPolicy="Hold"), "another")) == (422, "Invalid")
    assert applied(alice, QUEUE, queue(stopPolicy="Hold"), "first").status_code == 200


@pytest.mark.parametrize("by_kubectl", [True, False])
def test_managers_go_with_their_object(alice: APIClient, queues: Cluster, by_kubectl: bool) -> None:
    path = f"{KUEUE}/namespaces/team-a/localqueues/more"
    applied(alice, path, local_queue())
    applied(alice, QUEUE, queue(stopPolicy="Hold"))
    if by_kubectl:
        send(alice, "DELETE", path)
    else:
        apply_manifests(queues, yaml.safe_dump(local_queue("third")), user=None)
        LocalQueue.objects.filter(name="more").delete()
        forget_lost_managers(timezone.now())
        assert ManagedFields.objects.count() == 2, "a row of the last hour may be of an object that is being made"
        forget_lost_managers(timezone.now() + timedelta(hours=2))
    assert ManagedFields.objects.get().name == "research"
