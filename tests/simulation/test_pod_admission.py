"""New pods in the simulated cluster: what LimitRanges and RuntimeClasses add, and what they refuse."""

from __future__ import annotations

from typing import Any

import pytest

from tests.simulated_cluster import JOBS, PODS, Api, JsonObject, job, make_simulated, pod

RANGES = "/api/v1/namespaces/default/limitranges"
CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"


@pytest.fixture
def api() -> Api:
    return Api(make_simulated())


def limit_range(**item: Any) -> JsonObject:
    limits = [{"type": "Container", **item}]
    return {"kind": "LimitRange", "apiVersion": "v1", "metadata": {"name": "sizes"}, "spec": {"limits": limits}}


def test_a_limit_range_is_completed_and_completes_pods(api: Api) -> None:
    stored = api.create(RANGES, limit_range(max={"memory": "1Gi"}))
    assert stored["spec"]["limits"][0]["defaultRequest"] == {"memory": "1Gi"}
    created = api.create(PODS, pod())
    assert created["spec"]["containers"][0]["resources"] == {
        "limits": {"memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}
    }  # fmt: skip


def test_out_of_bounds_is_forbidden(api: Api) -> None:
    api.create(RANGES, limit_range(max={"cpu": "500m"}))
    answer = api.call("POST", PODS, pod())
    assert (answer.code, answer.body["reason"]) == (403, "Forbidden")
    assert "maximum 500m" in answer.body["message"]


def test_a_job_s_pods_are_refused_and_the_job_goes_on(api: Api) -> None:
    api.create(RANGES, limit_range(max={"cpu": "500m"}))
    api.create(JOBS, job())
    assert api.pods() == []
    api.call("DELETE", f"{RANGES}/sizes")
    api.patch(f"{JOBS}/train", {"metadata": {"labels": {"again": "now"}}})
    assert len(api.pods()) == 1


def test_a_runtime_class_adds_its_overhead_and_must_be_there(api: Api) -> None:
    answer = api.call("POST", PODS, pod(runtimeClassName="kata"))
    assert (answer.code, 'RuntimeClass "kata" not found' in answer.body["message"]) == (403, True)
    api.create(CLASSES, {"metadata": {"name": "kata"}, "handler": "kata", "overhead": {"podFixed": {"cpu": "250m"}}})
    assert api.create(PODS, pod(runtimeClassName="kata"))["spec"]["overhead"] == {"cpu": "250m"}


def test_quotas_are_served(api: Api) -> None:
    quota = {"metadata": {"name": "gpus"}, "spec": {"hard": {"limits.nvidia.com/gpumem": "10"}}}
    api.create("/api/v1/namespaces/default/resourcequotas", quota)
    assert api.names("/api/v1/resourcequotas") == ["gpus"]
