"""Kueue's objects between v1beta1 and v1beta2: each difference both ways, and there and back again."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as some

from clusters.api_objects import CUSTOM_RESOURCES
from clusters.client import ClusterClient
from clusters.client_credentials import connect
from clusters.webhook.configurations import Target
from clusters.webhook.conversion import API_VERSION, NEW, OLD, NotConvertible, answer_conversion, convert
from clusters.webhook.reviews import BadReview
from clusters.webhook.server import Registration
from tests.simulated_cluster import ServerThread, make_simulated

Json = dict[str, Any]
PAIRS: list[tuple[str, Json, Json]] = [
    (
        "ClusterQueue",
        {
            "spec": {
                "cohort": "all",
                "queueingStrategy": "StrictFIFO",
                "flavorFungibility": {"whenCanBorrow": "TryNextFlavor"},
            }
        },
        {
            "spec": {
                "cohortName": "all",
                "queueingStrategy": "StrictFIFO",
                "flavorFungibility": {"whenCanBorrow": "TryNextFlavor"},
            }
        },
    ),
    ("Cohort", {"spec": {"parentName": "root"}}, {"spec": {"parentName": "root"}}),
    (
        "LocalQueue",
        {
            "spec": {"clusterQueue": "main"},
            "status": {"flavorUsage": [{"name": "gpu", "resources": []}], "pendingWorkloads": 1},
        },
        {
            "spec": {"clusterQueue": "main"},
            "status": {"flavorsUsage": [{"name": "gpu", "resources": []}], "pendingWorkloads": 1},
        },
    ),
    (
        "Workload",
        {
            "spec": {
                "priorityClassSource": "kueue.x-k8s.io/workloadpriorityclass",
                "priorityClassName": "high",
                "priority": 9,
            },
            "status": {
                "accumulatedPastExexcutionTimeSeconds": 7,
                "admission": {
                    "clusterQueue": "main",
                    "podSetAssignments": [
                        {"name": "main"},
                        {
                            "name": "w",
                            "topologyAssignment": {
                                "levels": ["rack", "host"],
                                "domains": [{"values": ["r1", "n1"], "count": 2}, {"values": ["r1", "n2"], "count": 1}],
                            },
                        },
                    ],
                },
            },
        },
        {
            "spec": {
                "priorityClassRef": {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "high"},
                "priority": 9,
            },
            "status": {
                "accumulatedPastExecutionTimeSeconds": 7,
                "admission": {
                    "clusterQueue": "main",
                    "podSetAssignments": [
                        {"name": "main"},
                        {
                            "name": "w",
                            "topologyAssignment": {
                                "levels": ["rack", "host"],
                                "slices": [
                                    {
                                        "domainCount": 2,
                                        "valuesPerLevel": [
                                            {"universal": "r1"},
                                            {"individual": {"prefix": "n", "roots": ["1", "2"]}},
                                        ],
                                        "podCounts": {"individual": [2, 1]},
                                    }
                                ],
                            },
                        },
                    ],
                },
            },
        },
    ),
    (
        "Workload",
        {"spec": {"priorityClassSource": "scheduling.k8s.io/priorityclass", "priorityClassName": "low"}},
        {"spec": {"priorityClassRef": {"group": "scheduling.k8s.io", "kind": "PriorityClass", "name": "low"}}},
    ),
    (
        "MultiKueueCluster",
        {"spec": {"kubeConfig": {"location": "east", "locationType": "Secret"}}},
        {"spec": {"clusterSource": {"kubeConfig": {"location": "east", "locationType": "Secret"}}}},
    ),
    (
        "MultiKueueCluster",
        {"spec": {"clusterProfileRef": {"name": "east"}}},
        {"spec": {"clusterSource": {"clusterProfileRef": {"name": "east"}}}},
    ),
    ("ResourceFlavor", {"spec": {"nodeLabels": {"gpu": "on"}}}, {"spec": {"nodeLabels": {"gpu": "on"}}}),
]


def named(kind: str, version: str, content: Json) -> Json:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "x", "uid": "u", "labels": {"a": "b"}}, **content}


@pytest.mark.parametrize(("kind", "old", "new"), PAIRS)
def test_each_difference_both_ways(kind: str, old: Json, new: Json) -> None:
    assert convert(named(kind, OLD, old), NEW) == named(kind, NEW, new)
    assert convert(named(kind, NEW, new), OLD) == named(kind, OLD, old)
    assert convert(named(kind, NEW, new), NEW) == named(kind, NEW, new)


@pytest.mark.parametrize(
    ("kind", "version", "content", "left"),
    [
        (
            "ClusterQueue",
            OLD,
            {
                "spec": {
                    "admissionChecks": ["budget"],
                    "flavorFungibility": {"whenCanBorrow": "Borrow", "whenCanPreempt": "Preempt"},
                },
                "status": {
                    "pendingWorkloadsStatus": {},
                    "fairSharing": {"weightedShare": 3, "admissionFairSharingStatus": {}},
                },
            },
            {
                "spec": {
                    "admissionChecksStrategy": {"admissionChecks": [{"name": "budget"}]},
                    "flavorFungibility": {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "MayStopSearch"},
                },
                "status": {"fairSharing": {"weightedShare": 3}},
            },
        ),
        (
            "ClusterQueue",
            NEW,
            {"spec": {"concurrentAdmissionPolicy": {}, "cohortName": "a"}},
            {"spec": {"cohort": "a"}},
        ),
        ("LocalQueue", OLD, {"status": {"flavors": [], "pendingWorkloads": 1}}, {"status": {"pendingWorkloads": 1}}),
        (
            "AdmissionCheck",
            OLD,
            {"spec": {"controllerName": "c", "retryDelayMinutes": 15}},
            {"spec": {"controllerName": "c"}},
        ),
        ("MultiKueueConfig", NEW, {"spec": {"clusters": ["a"], "quotaManagement": {}}}, {"spec": {"clusters": ["a"]}}),
        (
            "Workload",
            NEW,
            {
                "spec": {
                    "preemptionGates": [],
                    "podSets": [
                        {
                            "name": "m",
                            "topologyRequest": {"required": "rack", "podsetSliceRequiredTopologyConstraints": []},
                        }
                    ],
                },
                "status": {"preemptionGates": [], "requeueState": {"count": 1}},
            },
            {
                "spec": {"podSets": [{"name": "m", "topologyRequest": {"required": "rack"}}]},
                "status": {"requeueState": {"count": 1}},
            },
        ),
    ],
)
def test_what_only_one_version_says_is_left_out(kind: str, version: str, content: Json, left: Json) -> None:
    other = NEW if version == OLD else OLD
    assert convert(named(kind, version, content), other) == named(kind, other, left)


names = some.text("abcdefghij-0123456789", min_size=1, max_size=8)
domains = some.lists(
    some.fixed_dictionaries({"values": some.lists(names, min_size=2, max_size=2), "count": some.integers(1, 9)}),
    min_size=1,
    max_size=12,
)
workloads = some.fixed_dictionaries(
    {},
    optional={
        "priority": some.integers(0, 9),
        "queueName": names,
        "active": some.booleans(),
        "class": some.tuples(
            some.sampled_from(["kueue.x-k8s.io/workloadpriorityclass", "scheduling.k8s.io/priorityclass"]), names
        ),
        "topology": domains,
        "seconds": some.integers(0, 99),
    },
)


@given(workloads)
def test_workloads_survive_the_way_there_and_back(drawn: Json) -> None:
    spec: Json = {key: drawn[key] for key in ("priority", "queueName", "active") if key in drawn}
    if "class" in drawn:
        spec |= {"priorityClassSource": drawn["class"][0], "priorityClassName": drawn["class"][1]}
    status: Json = {"accumulatedPastExexcutionTimeSeconds": drawn["seconds"]} if "seconds" in drawn else {}
    if "topology" in drawn:
        assignment = {"levels": ["rack", "host"], "domains": drawn["topology"]}
        status["admission"] = {"podSetAssignments": [{"name": "main", "topologyAssignment": assignment}]}
    before = named("Workload", OLD, {"spec": spec, "status": status})
    new = convert(before, NEW)
    assert convert(new, OLD) == before
    assert convert(convert(new, OLD), NEW) == new


@given(
    some.fixed_dictionaries(
        {},
        optional={
            "cohort": names,
            "queueingStrategy": names,
            "stopPolicy": names,
            "flavorFungibility": some.fixed_dictionaries(
                {"whenCanBorrow": some.sampled_from(["MayStopSearch", "TryNextFlavor"])}
            ),
            "admissionChecksStrategy": some.fixed_dictionaries(
                {"admissionChecks": some.lists(some.fixed_dictionaries({"name": names}))}
            ),
        },
    )
)
def test_queues_survive_the_way_there_and_back(spec: Json) -> None:
    before = named("ClusterQueue", OLD, {"spec": spec})
    assert convert(convert(before, NEW), OLD) == before


def review(*objects: Json, wanted: str = NEW) -> Json:
    request = {"uid": "r", "desiredAPIVersion": wanted, "objects": list(objects)}
    answer = orjson.loads(answer_conversion(orjson.dumps({"apiVersion": API_VERSION, "request": request})))
    assert (answer["kind"], answer["response"]["uid"]) == ("ConversionReview", "r")
    response: Json = answer["response"]
    return response


def test_a_review_is_answered_for_all_its_objects() -> None:
    found = review(named("ClusterQueue", OLD, {"spec": {"cohort": "a"}}), named("Cohort", OLD, {}))
    assert found["result"] == {"status": "Success"}
    assert [each["apiVersion"] for each in found["convertedObjects"]] == [NEW, NEW]


def test_what_cannot_be_converted_says_which_and_why() -> None:
    half = named(
        "Workload", NEW, {"status": {"admission": {"podSetAssignments": [{"topologyAssignment": {"levels": ["a"]}}]}}}
    )
    found = review(half, wanted=OLD)
    assert found["result"]["status"] == "Failure"
    assert found["result"]["message"].startswith("Workload x: cannot be read as kueue.x-k8s.io/v1beta2: KeyError")
    with pytest.raises(NotConvertible, match=r"from kueue\.x-k8s\.io/v1beta2 to kueue\.x-k8s\.io/v1"):
        convert(named("Cohort", NEW, {}), "kueue.x-k8s.io/v1")
    for body in (b"{", b"{}", b"[]", b'{"apiVersion": "apiextensions.k8s.io/v1", "request": {}}'):
        with pytest.raises(BadReview):
            answer_conversion(body)


def test_the_definitions_name_us_where_the_objects_are_ours() -> None:
    with ServerThread(make_simulated()) as server:
        client = connect(server.url)
        versions = [{"name": name, "served": True, "storage": name == "v1beta2"} for name in ("v1beta1", "v1beta2")]
        kueues = {"service": {"namespace": "kueue-system", "name": "kueue-webhook-service"}}
        for plural, kind, count in (("clusterqueues", "ClusterQueue", 2), ("cohorts", "Cohort", 1)):
            names = {"plural": plural, "kind": kind}
            spec = {"group": "kueue.x-k8s.io", "names": names, "scope": "Cluster", "versions": versions[-count:]}
            spec["conversion"] = {"strategy": "Webhook", "webhook": {"clientConfig": kueues}}
            named_so = {"name": f"{plural}.kueue.x-k8s.io"}
            client.create(CUSTOM_RESOURCES, {**_HEAD, "metadata": named_so, "spec": spec})
        target = Target(url="https://webhook:9443")
        Registration(client, target, lambda: False).write(b"ca")
        assert _conversion(client, "clusterqueues")["clientConfig"] == kueues, "they are not ours"
        serves = Registration(client, target, lambda: False, lambda: True)
        serves.write(b"ca")
        told = _conversion(client, "clusterqueues")
        assert told["clientConfig"] == {"url": "https://webhook:9443/convert", "caBundle": "Y2E="}
        assert told["conversionReviewVersions"] == ["v1"]
        assert _conversion(client, "cohorts")["clientConfig"] == kueues, "it has one version"
        before = client.get(CUSTOM_RESOURCES, "", "clusterqueues.kueue.x-k8s.io")
        serves.write(b"ca")
        assert client.get(CUSTOM_RESOURCES, "", "clusterqueues.kueue.x-k8s.io") == before


_HEAD = {"apiVersion": CUSTOM_RESOURCES.api_version, "kind": CUSTOM_RESOURCES.kind}


def _conversion(client: ClusterClient, plural: str) -> Json:
    found = client.get(CUSTOM_RESOURCES, "", f"{plural}.kueue.x-k8s.io")
    assert found is not None
    webhook: Json = found["spec"]["conversion"]["webhook"]
    return webhook
