"""What a workload's containers use, over REST."""

from __future__ import annotations

from django.utils import timezone

from accounts.models import Cluster
from foundation.time_series import Resolution, start_of
from gpus.models import ContainerSample, Device
from queues.models import Pod
from tests.api_client import SchemaClient
from tests.factories import make_node, make_workload

URL = "/api/v1/workloads/team-a/train/samples/"


def test_its_own_pods_and_no_others(cluster: Cluster, bob: SchemaClient, charlie: SchemaClient) -> None:
    make_node(cluster, "n1", [{}])
    device = Device.objects.get()
    at = start_of(timezone.now(), Resolution.RAW)
    Pod.objects.create(
        workload=make_workload(cluster, "train", namespace="team-a"),
        pod_set="main", replica=0, namespace="team-a", name="train-0", uid="u",
    )  # fmt: skip
    for pod, memory in (("train-0", 12.0), ("other-0", 99.0)):
        ContainerSample.objects.create(
            device=device, namespace="team-a", pod_name=pod, container="main", at=at, memory_used_mib=memory
        )
    [sample] = bob.get(URL).json()["results"]
    assert (sample["pod_name"], sample["container"], sample["uuid"]) == ("train-0", "main", "n1-0")
    assert (sample["memory_used_mib"], sample["utilization_percent"]) == (12.0, None)
    assert bob.get(f"{URL}?resolution=5m").json()["results"] == []
    assert bob.get(f"{URL}?resolution=weekly").status_code == 400
    assert charlie.get(URL).status_code == 404
    assert bob.get("/api/v1/workloads/team-a/none/samples/").status_code == 404
