"""How many SQL queries each endpoint needs: frozen in tests/query_counts.json, and the same for few rows and many.

UPDATE_QUERY_COUNTS=1 writes the file anew; look at the difference before you commit it.
"""

import json
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import Cluster, Role, RoleBinding
from accounts.services.service_accounts import create_service_account
from accounts.services.tokens import create_token
from gpus.models import Device, DeviceAllocation, Node
from queues.manifests.workload import PodSetSpec, WorkloadSpec
from queues.models import (
    LimitRange,
    Pod,
    Reservation,
    ResourceQuota,
    RuntimeClass,
    Topology,
    Workload,
    WorkloadPriorityClass,
)
from queues.services.submission import create_workloads
from scheduler.models import Decision, SchedulingCycle
from studio.models import KeptEstimate, Question
from tests.api_client import SchemaClient
from tests.factories import make_cluster_queue, make_cohort
from tests.users import EPOCH

FROZEN = Path(__file__).parents[1] / "query_counts.json"
ENDPOINTS = (
    "audit/",
    "audit/?cluster=*",
    "auth/tokens/",
    "cluster-queues/",
    "cluster-queues/?cluster=*",
    "cluster-queues/queue-0/",
    "cluster-overviews/",
    "clusters/",
    "cohorts/",
    "cohorts/tree/",
    "decisions/",
    "decisions/?cluster=*",
    "device-allocations/",
    "devices/",
    "devices/?cluster=*",
    "device-usage/",
    "devices/GPU-0/",
    "devices/GPU-0/samples/",
    "diagnostics/",
    "drift/",
    "fragmentation/",
    "history/?metric=pending&metric=pending_by_reason&metric=used&metric=devices_held&metric=wait_p50",
    "limit-ranges/",
    "local-queues/",
    "local-queues/?cluster=*",
    "manifests/clusterqueue/",
    "namespaces/",
    "nodes/",
    "nodes/?cluster=*",
    "notification-rules/",
    "notification-rules/?cluster=*",
    "notifications/",
    "notifications/?cluster=*",
    "notifications/status/",
    "nodes/node-0/",
    "nodes/node-0/pods/",
    "prices/",
    "published-devices/",
    "served-objects/problems/",
    "overview/",
    "multikueue-clusters/",
    "multikueue-configs/",
    "provisioning-request-configs/",
    "reports/idle/",
    "reports/idle/?cluster=*",
    "reports/preemptions/",
    "reports/preemptions/?cluster=*",
    "reports/usage/",
    "reports/usage/?cluster=*",
    "reports/waits/",
    "reports/waits/?cluster=*",
    "studio/accuracy/",
    "studio/questions/",
    "job-flows/",
    "reservation-calendar/",
    "reservations/",
    "resource-flavors/",
    "resource-quotas/",
    "role-bindings/",
    "role-bindings/?cluster=*",
    "role-bindings/binding-0/",
    "runtime-classes/",
    "scheduling-cycles/",
    "scheduling-cycles/?cluster=*",
    "manifest-templates/",
    "saved-views/",
    "service-accounts/",
    "service-accounts/machine-0/tokens/",
    "users/",
    "shadow/",
    "shadow/?cluster=*",
    "shadow/differences/",
    "topologies/",
    "workload-priority-classes/",
    "workloads/",
    "workloads/?annotations=a,b",
    "workloads/?cluster=*",
    "workloads/counts/?by=label:team",
    "workloads/counts/?by=node",
    "workloads/?cluster_queue=queue-0&ordering=position",
    "workloads/?search=w-&status=Pending",
    "workloads/team-a/w-0/",
    "workloads/team-a/w-0/events/",
    "workloads/team-a/w-0/moves/",
    "workloads/team-a/w-0/pods/",
    "workloads/team-a/w-0/samples/",
)


def fill(cluster: Cluster, start: int, stop: int) -> None:
    """A row of everything for each number."""
    pod_sets = (PodSetSpec("leader", 1, {}, {"cpu": 1}), PodSetSpec("workers", 4, {}, {"cpu": 1}))
    for index in range(start, stop):
        make_cohort(cluster, f"cohort-{index}", parent_name="root")
        make_cluster_queue(cluster, f"queue-{index}", local_queue=f"local-{index}", cohort_name=f"cohort-{index}")
        node = Node.objects.create(cluster=cluster, name=f"node-{index}", created_at=EPOCH)
        device = Device.objects.create(node=node, uuid=f"GPU-{index}", index=0, slots=10, memory_mib=100)
        create_workloads(cluster, [WorkloadSpec("team-a", f"w-{index}", "local-0", pod_sets)], actor="x")
        workload = Workload.objects.get(name=f"w-{index}")
        DeviceAllocation.objects.create(
            cluster=cluster,
            node=node,
            device=device,
            device_uuid=device.uuid,
            workload=workload,
            memory_mib=1,
            cores_percent=1,
            created_at=EPOCH,
        )
        Pod.objects.create(
            workload=workload, pod_set="leader", replica=0, namespace="team-a", name=f"pod-{index}", node_name="node-0"
        )
        Decision.objects.create(
            id=index,
            decided_at=EPOCH,
            cluster_name="default",
            epoch=1,
            cycle=index,
            action="Admit",
            namespace="team-a",
            workload_name=workload.name,
            workload_uid=workload.uid,
            reason="x",
        )
        SchedulingCycle.objects.create(
            cluster=cluster,
            epoch=1,
            number=index,
            started_at=EPOCH,
            duration_seconds=1,
            heads=1,
            admitted=1,
            preempted=0,
            inadmissible=0,
        )
        Topology.objects.create(cluster=cluster, name=f"topology-{index}", levels=["rack"], created_at=EPOCH)
        WorkloadPriorityClass.objects.create(cluster=cluster, name=f"class-{index}", value=index, created_at=EPOCH)
        in_team = {"cluster": cluster, "namespace": "team-a", "created_at": EPOCH}
        ResourceQuota.objects.create(name=f"quota-{index}", **in_team)
        LimitRange.objects.create(name=f"limits-{index}", **in_team)
        RuntimeClass.objects.create(cluster=cluster, name=f"runtime-{index}", created_at=EPOCH)
        now = timezone.now()
        Reservation.objects.create(
            cluster=cluster,
            name=f"reserved-{index}",
            node_names=[f"node-{index}", "node-0"],
            starts_at=now,
            ends_at=now + timedelta(hours=1),
            created_at=EPOCH,
        )
        alice = User.objects.get(username="alice")
        create_token(alice, f"token-{index}")
        named = {"namespace": "team-a", "name": workload.name}
        Question.objects.create(cluster=cluster, user=alice, kind="remedies", namespace="team-a", inputs=named)
        KeptEstimate.objects.create(
            cluster=cluster,
            workload_uid=workload.uid,
            namespace="team-a",
            workload_name=workload.name,
            cluster_queue=f"queue-{index}",
            tree="cohort root",
            queued_at=EPOCH,
            stage_seconds=0,
            made_at=EPOCH,
            started_at=timezone.now(),
        )
        create_token(create_service_account(f"machine-{index}").user)
        RoleBinding.objects.create(cluster=cluster, name=f"binding-{index}", group="students", role=Role.VIEWER)
    Workload.objects.update(cluster_queue_name="queue-0")


def count(client: SchemaClient) -> dict[str, int]:
    counts = {}
    for endpoint in ENDPOINTS:
        with CaptureQueriesContext(
            connection,
        ) as queries:
            response: Any = client.get(f"/api/v1/{endpoint}")
        assert response.status_code == 200, endpoint
        counts[endpoint] = len(queries)
    return counts


def longer_than_asked(client: SchemaClient) -> list[str]:
    """The lists that take a limit, and answer with more rows."""
    found = []
    for endpoint in ENDPOINTS:
        response: Any = client.get(f"/api/v1/{endpoint}{'&' if '?' in endpoint else '?'}limit=1")
        assert response.status_code in {200, 400}, endpoint
        if response.status_code == 200 and len(response.json()["results"]) > 1:
            found.append(endpoint)
    return found


def test_queries_of_each_endpoint(alice: SchemaClient, cluster: Cluster) -> None:
    fill(cluster, 0, 2)
    few = count(alice)
    fill(cluster, 2, 12)
    many = count(alice)
    assert many == few, "the number of queries grows with the number of rows"
    assert longer_than_asked(alice) == []
    if os.environ.get("UPDATE_QUERY_COUNTS") == "1":
        FROZEN.write_text(json.dumps(many, indent=2) + "\n")
        pytest.skip("tests/query_counts.json is written anew")
    assert many == json.loads(FROZEN.read_text()), "run with UPDATE_QUERY_COUNTS=1 if that is meant"
