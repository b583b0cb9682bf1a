"""Over HTTP, driven by the `kubernetes` package itself: typed calls, watches, chaos and the clock."""

from __future__ import annotations

import urllib.error
from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes import client, watch
from kubernetes.client.exceptions import ApiException

from tests.simulated_cluster import ServerThread, job, make_simulated, post

MERGE = "application/merge-patch+json"


@pytest.fixture
def server() -> Iterator[ServerThread]:
    with ServerThread(make_simulated()) as running:
        yield running


@pytest.fixture
def package(server: ServerThread) -> Iterator[Any]:
    with client.ApiClient(client.Configuration(host=server.url)) as api:
        yield api


def batch_api(package: Any) -> Any:
    """Any: the package's models are all optional fields, and it takes plain JSON too."""
    return client.BatchV1Api(package)


def core_api(package: Any) -> Any:
    return client.CoreV1Api(package)


def test_typed_objects_round_trip(server: ServerThread, package: Any) -> None:
    batch, core = batch_api(package), core_api(package)
    created = batch.create_namespaced_job("default", job(parallelism=2, completions=2))
    assert created.spec.parallelism == 2
    post(f"{server.url}/_clock", {"advance": 5})
    pods = core.list_namespaced_pod("default", label_selector="job-name=train").items
    assert [pod.status.phase for pod in pods] == ["Running", "Running"]
    assert pods[0].metadata.owner_references[0].uid == created.metadata.uid
    batch.delete_namespaced_job("train", "default", propagation_policy="Background")
    post(f"{server.url}/_clock", {"advance": 5})
    assert core.list_namespaced_pod("default").items == []


def test_errors_are_api_exceptions(package: Any) -> None:
    core, batch = core_api(package), batch_api(package)
    with pytest.raises(ApiException) as missing:
        core.read_namespaced_pod("none", "default")
    assert missing.value.status == 404
    batch.create_namespaced_job("default", job(suspend=True))
    with pytest.raises(ApiException) as twice:
        batch.create_namespaced_job("default", job(suspend=True))
    assert twice.value.status == 409


def test_server_side_apply_with_the_package(package: Any) -> None:
    batch = batch_api(package)
    kind = "application/apply-patch+yaml"
    body = job(suspend=True, parallelism=1)
    batch.patch_namespaced_job("train", "default", body, field_manager="one", _content_type=kind)
    body["spec"]["parallelism"] = 2
    with pytest.raises(ApiException) as clash:
        batch.patch_namespaced_job("train", "default", body, field_manager="two", _content_type=kind)
    assert (clash.value.status, ".spec.parallelism" in str(clash.value.body)) == (409, True)
    forced = batch.patch_namespaced_job("train", "default", body, field_manager="two", force=True, _content_type=kind)
    assert forced.spec.parallelism == 2


def watched(package: Any, version: str, **arguments: Any) -> list[tuple[str, str]]:
    package_watch: Any = watch.Watch
    stream = package_watch().stream(
        batch_api(package).list_namespaced_job,
        "default",
        resource_version=version,
        timeout_seconds=1,
        **arguments,
    )
    return [(event["type"], event["object"].metadata.name) for event in stream]


def test_a_watch_resumes_from_a_version(package: Any) -> None:
    batch = batch_api(package)
    version = batch.list_namespaced_job("default").metadata.resource_version
    batch.create_namespaced_job("default", job("a", suspend=True))
    created = batch.read_namespaced_job("a", "default")
    batch.patch_namespaced_job("a", "default", {"metadata": {"labels": {"team": "x"}}}, _content_type=MERGE)
    batch.delete_namespaced_job("a", "default")
    kinds = [kind for kind, _ in watched(package, version)]
    assert (kinds[0], kinds[-1]) == ("ADDED", "DELETED")
    later = [kind for kind, _ in watched(package, created.metadata.resource_version)]
    assert later == ["MODIFIED", "DELETED"]


def test_an_object_that_begins_or_ceases_to_match_is_added_or_deleted(package: Any) -> None:
    batch = batch_api(package)
    batch.create_namespaced_job("default", job("a", suspend=True))
    version = batch.list_namespaced_job("default").metadata.resource_version
    for label in ("x", "y"):
        batch.patch_namespaced_job("a", "default", {"metadata": {"labels": {"team": label}}}, _content_type=MERGE)
    assert watched(package, version, label_selector="team=x") == [("ADDED", "a"), ("DELETED", "a")]


def test_a_watch_of_a_forgotten_version_is_gone(server: ServerThread, package: Any) -> None:
    version = batch_api(package).list_namespaced_job("default").metadata.resource_version
    batch_api(package).create_namespaced_job("default", job(suspend=True))
    post(f"{server.url}/_chaos", {"compact": True})
    with pytest.raises(ApiException) as gone:
        watched(package, version)
    assert gone.value.status == 410


@pytest.mark.parametrize("code", [410, 429, 500])
def test_every_request_is_refused_on_demand(server: ServerThread, package: Any, code: int) -> None:
    post(f"{server.url}/_chaos", {"refusal": code})
    with pytest.raises(ApiException) as refused:
        batch_api(package).list_namespaced_job("default")
    assert refused.value.status == code
    post(f"{server.url}/_chaos", {"refusal": 0})
    assert batch_api(package).list_namespaced_job("default").items == []


@pytest.mark.parametrize(("chaos", "expected"), [({"drop_rate": 1}, 0), ({"repeat_rate": 1}, 2), ({}, 1)])
def test_watches_drop_and_repeat_on_demand(
    server: ServerThread, package: Any, chaos: dict[str, float], expected: int
) -> None:
    version = batch_api(package).list_namespaced_job("default").metadata.resource_version
    post(f"{server.url}/_chaos", {"watch": chaos})
    batch_api(package).create_namespaced_job("default", job(suspend=True))
    assert len([kind for kind, _ in watched(package, version) if kind == "ADDED"]) == expected


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/_chaos", {"watch": {"drop_rate": 2}}),
        ("/_chaos", {"watch": {"color": 1}}),
        ("/_chaos", {"weather": {}}),
        ("/_chaos", {"refusal": 200}),
        ("/_chaos", {"nodes": {"nowhere": "gone"}}),
        ("/_chaos", {"nodes": {"node-01": "purple"}}),
        ("/_chaos", {"options": {"time_scale": 0}}),
        ("/_clock", {"advance": -1}),
        ("/_clock", []),
    ],
)
def test_what_chaos_and_the_clock_can_not_do_is_refused(server: ServerThread, path: str, body: Any) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        post(f"{server.url}{path}", body)
    assert refused.value.code in (400, 404)
    refused.value.close()


def test_nodes_come_and_go_on_demand(server: ServerThread, package: Any) -> None:
    post(f"{server.url}/_chaos", {"nodes": {"node-01": "not-ready", "node-02": "gone"}})
    (node,) = core_api(package).list_node().items
    assert {taint.effect for taint in node.spec.taints} == {"NoSchedule", "NoExecute"}
