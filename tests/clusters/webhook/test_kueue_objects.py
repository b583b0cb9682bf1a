"""Kueue's rules for its own objects, at their admission, where they are ours to serve."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from clusters.api_objects import JsonObject
from clusters.jobs.framework.store import ObjectStore
from clusters.jobs.integrations import job_context
from clusters.served.contents import FINALIZER
from clusters.webhook.admission import Admission
from clusters.webhook.kueue_objects import MUTATE_KUEUE, VALIDATE_KUEUE
from clusters.webhook.reviews import AdmissionRequest, Verdict
from simulation.api.json_patch import apply_json_patch
from tests.clusters.served_cluster import queue_spec
from tests.clusters.webhook.served import FixedSurroundings

V1BETA2 = "kueue.x-k8s.io/v1beta2"


def review(
    path: str, obj: JsonObject, old: JsonObject | None = None, *, serving: bool = True, user: str = "alice"
) -> Verdict:
    surroundings = FixedSurroundings(job_context({}, ObjectStore([])), trusted=["us"])
    surroundings.serving = serving
    metadata = obj["metadata"]
    operation = "UPDATE" if old else "CREATE"
    request = AdmissionRequest(
        "1", operation, obj["apiVersion"], obj["kind"], metadata.get("namespace", ""), metadata["name"], user,
        copy.deepcopy(obj), copy.deepcopy(old or {}),
    )  # fmt: skip
    return Admission(surroundings).review(path, request)


def cluster_queue(version: str = V1BETA2, **spec: Any) -> JsonObject:
    return {"apiVersion": version, "kind": "ClusterQueue", "metadata": {"name": "main"}, **queue_spec(**spec)}


def causes(verdict: Verdict) -> list[tuple[str, str]]:
    assert verdict.status is not None
    return [(cause["reason"], cause["field"]) for cause in verdict.status["details"]["causes"]]


def test_what_kueue_takes_is_taken_in_both_versions() -> None:
    assert review(VALIDATE_KUEUE, cluster_queue(cohortName="a")).allowed
    assert review(VALIDATE_KUEUE, cluster_queue("kueue.x-k8s.io/v1beta1", cohort="a")).allowed


def test_what_kueue_refuses_is_refused_with_its_field() -> None:
    refused = review(VALIDATE_KUEUE, cluster_queue(queueingStrategy="Backwards"))
    assert causes(refused) == [("FieldValueInvalid", "spec.queueingStrategy")]
    assert refused.status is not None
    assert (refused.status["code"], refused.status["reason"]) == (403, "Forbidden")
    assert refused.status["message"].startswith('spec.queueingStrategy: Invalid value: "Backwards"')
    limit = cluster_queue(cohortName="a")
    limit["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["lendingLimit"] = "5"
    [(_, field)] = causes(review(VALIDATE_KUEUE, limit))
    assert field == "spec.resourceGroups[0].flavors[0].resources[0].lendingLimit"


def test_what_is_immutable_stays() -> None:
    def queue(cluster_queue: str) -> JsonObject:
        metadata = {"name": "local", "namespace": "team"}
        spec = {"clusterQueue": cluster_queue}
        return {"apiVersion": V1BETA2, "kind": "LocalQueue", "metadata": metadata, "spec": spec}

    assert causes(review(VALIDATE_KUEUE, queue("b"), queue("a"))) == [("FieldValueInvalid", "spec.clusterQueue")]
    assert review(VALIDATE_KUEUE, queue("a"), queue("a")).allowed
    assert review(VALIDATE_KUEUE, queue("b"), queue("a"), user="us").allowed


def test_a_workload_with_quota_keeps_its_pods() -> None:
    template = {"spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}}

    def workload(count: int, status: str) -> JsonObject:
        spec = {"queueName": "local", "podSets": [{"name": "main", "count": count, "template": template}]}
        conditions = [{"type": "QuotaReserved", "status": status, "reason": "QuotaReserved"}]
        metadata = {"name": "w", "namespace": "team"}
        return {
            "apiVersion": V1BETA2, "kind": "Workload", "metadata": metadata, "spec": spec,
            "status": {"conditions": conditions},
        }  # fmt: skip

    refused = review(VALIDATE_KUEUE, workload(3, "True"), workload(2, "True"))
    assert causes(refused) == [("FieldValueForbidden", "spec.podSets")]
    assert review(VALIDATE_KUEUE, workload(3, "False"), workload(2, "False")).allowed
    assert not review(VALIDATE_KUEUE, workload(-1, "False")).allowed


@pytest.mark.parametrize(("kind", "holds"), [("ClusterQueue", True), ("Cohort", False)])
def test_what_may_be_used_gets_the_finalizer_that_holds_it(kind: str, holds: bool) -> None:
    made = {"apiVersion": V1BETA2, "kind": kind, "metadata": {"name": "main"}, "spec": {}}
    patched = apply_json_patch(made, list(review(MUTATE_KUEUE, made).patch))
    assert patched["metadata"].get("finalizers", []) == ([FINALIZER] if holds else [])


def test_where_they_are_not_ours_everything_is_let_in() -> None:
    wrong = cluster_queue(queueingStrategy="Backwards")
    assert review(VALIDATE_KUEUE, wrong, serving=False).allowed
    assert review(MUTATE_KUEUE, wrong, serving=False).patch == ()
