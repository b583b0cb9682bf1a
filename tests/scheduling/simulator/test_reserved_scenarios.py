"""Scenarios with reservations: their windows are events of the virtual cluster."""

from __future__ import annotations

from typing import Any

import pytest

from scheduling.simulator.simulator import simulate


def scenario(spec: dict[str, Any], **workload: Any) -> dict[str, Any]:
    """One node of 4 CPUs with a reservation from minute 1 to 2, and workloads of all CPUs for 2 minutes."""
    queue = {
        "metadata": {"name": "q"},
        "spec": {
            "namespaceSelector": {},
            "resourceGroups": [
                {
                    "coveredResources": ["cpu"],
                    "flavors": [{"name": "default", "resources": [{"name": "cpu", "nominalQuota": "8"}]}],
                }
            ],
        },
    }
    pod = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "4"}}}]}}
    return {
        "placement": "all",
        "namespaces": [{"metadata": {"name": "ns"}}],
        "nodes": [
            {
                "metadata": {"name": "a"},
                "status": {
                    "allocatable": {"cpu": "4", "pods": "10"},
                    "conditions": [{"type": "Ready", "status": "True"}],
                },
            }
        ],
        "resourceFlavors": [{"metadata": {"name": "default"}, "spec": {}}],
        "clusterQueues": [queue],
        "localQueues": [{"metadata": {"namespace": "ns", "name": "lq"}, "spec": {"clusterQueue": "q"}}],
        "reservations": [
            {
                "apiVersion": "kueueweb.io/v1",
                "kind": "Reservation",
                "metadata": {"name": "r"},
                "spec": {
                    "start": "2026-01-01T00:01:00Z",
                    "end": "2026-01-01T00:02:00Z",
                    "nodes": {"names": ["a"]},
                    **spec,
                },
            }
        ],
        "workloads": [
            {
                "metadata": {"namespace": "ns", "name": "w", "creationTimestamp": "2026-01-01T00:00:00Z"},
                "spec": {"queueName": "lq", "podSets": [{"name": "main", "count": 1, "template": pod}], **workload},
            }
        ],
        "runtimeSeconds": {"ns/w": 30},
    }


@pytest.mark.parametrize(
    ("spec", "workload", "finished"),
    [
        ({}, {}, 150.0),
        ({}, {"maximumExecutionTimeSeconds": 60}, 30.0),
        ({}, {"maximumExecutionTimeSeconds": 61}, 150.0),
        ({"allowed": {"namespaces": ["ns"]}}, {}, 30.0),
        ({"recurrence": "Daily"}, {}, None),
        ({"recurrence": "Daily"}, {"maximumExecutionTimeSeconds": 3600}, 150.0),
        ({"recurrence": "Daily", "until": "2026-01-02T00:00:00Z"}, {}, 150.0),
        ({"nodes": {"count": 1}}, {}, 150.0),
    ],
)
def test_a_window_delays_a_workload_that_may_run_into_it(
    spec: dict[str, Any], workload: dict[str, Any], finished: float | None
) -> None:
    assert simulate(scenario(spec, **workload))["finishedAtSeconds"].get("ns/w") == finished


@pytest.mark.parametrize(("if_busy", "finished"), [("Wait", 90.0), ("Evict", 210.0)])
def test_a_holder_on_the_node_is_evicted_where_the_reservation_says_so(if_busy: str, finished: float) -> None:
    """It holds quota from the beginning, for 90 seconds. Evicted after 60, it runs again when the window is over."""
    made = scenario({"ifBusy": if_busy})
    made["runtimeSeconds"]["ns/w"] = 90
    topology = {
        "levels": ["kubernetes.io/hostname"],
        "slices": [{"domainCount": 1, "podCounts": {"universal": 1}, "valuesPerLevel": [{"universal": "a"}]}],
    }
    assigned = {
        "name": "main",
        "flavors": {"cpu": "default"},
        "resourceUsage": {"cpu": "4"},
        "count": 1,
        "topologyAssignment": topology,
    }
    at = "2026-01-01T00:00:00Z"
    made["workloads"][0]["status"] = {
        "admission": {"clusterQueue": "q", "podSetAssignments": [assigned]},
        "conditions": [
            {"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": at}
            for kind in ("QuotaReserved", "Admitted")
        ],
    }
    assert simulate(made)["finishedAtSeconds"] == {"ns/w": finished}
