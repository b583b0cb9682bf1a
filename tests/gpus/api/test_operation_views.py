"""Cordon, drain, drift and use, over REST."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import Cluster
from foundation.time_series import Resolution, start_of
from gpus.models import Device, DeviceAllocation, DeviceSample, Node
from queues.models import Pod
from tests.api_client import SchemaClient
from tests.factories import make_node, make_workload
from tests.users import EPOCH


@pytest.fixture
def node(cluster: Cluster) -> Node:
    return make_node(cluster, "n1", [{}, {}])


class TestCordon:
    def test_an_admin_cordons_drains_and_opens_a_node(self, alice: SchemaClient, node: Node) -> None:
        url = "/api/v1/nodes/n1/"
        assert alice.patch(url, {"draining": True}, format="json").json()["cordoned"] is True
        node.refresh_from_db()
        assert (node.cordoned, node.draining) == (True, True)
        stays = alice.patch(url, {"draining": False}, format="json").json()
        assert (stays["cordoned"], stays["draining"]) == (True, False)
        alice.patch(url, {"draining": True}, format="json")
        opened = alice.patch(url, {"cordoned": False}, format="json").json()
        assert (opened["cordoned"], opened["draining"]) == (False, False)

    @pytest.mark.parametrize("url", ["/api/v1/nodes/n1/", "/api/v1/devices/n1-1/"])
    def test_each_step_can_be_taken_back_to_the_state_before(self, alice: SchemaClient, node: Node, url: str) -> None:
        def after(**change: bool) -> tuple[bool, bool]:
            answer = alice.patch(url, change, format="json").json()
            return answer["cordoned"], answer["draining"]

        assert (after(cordoned=True), after(cordoned=False)) == ((True, False), (False, False))
        assert (after(draining=True), after(cordoned=False)) == ((True, True), (False, False))
        cordoned = after(cordoned=True)
        assert (after(draining=True), after(draining=False)) == ((True, True), cordoned)
        assert (after(cordoned=False), after(cordoned=True)) == ((False, False), cordoned)
        draining = after(draining=True)
        assert (after(cordoned=False), after(draining=True)) == ((False, False), draining)

    @pytest.mark.parametrize("body", [{}, {"draining": True, "cordoned": False}])
    def test_what_says_nothing_or_contradicts_itself_is_refused(
        self, alice: SchemaClient, node: Node, body: dict[str, bool]
    ) -> None:
        assert alice.patch("/api/v1/nodes/n1/", body, format="json").status_code == 400

    def test_and_a_device(self, alice: SchemaClient, node: Node) -> None:
        answer = alice.patch("/api/v1/devices/n1-1/", {"cordoned": True}, format="json")
        assert (answer.status_code, answer.json()["cordoned"]) == (200, True)
        assert list(Device.objects.values_list("cordoned", flat=True)) == [False, True]

    def test_other_users_are_refused(self, bob: SchemaClient, vera: SchemaClient, node: Node) -> None:
        for client in (bob, vera):
            assert client.patch("/api/v1/nodes/n1/", {"cordoned": True}, format="json").status_code == 403
            assert client.patch("/api/v1/devices/n1-1/", {"cordoned": True}, format="json").status_code == 403
        assert not Node.objects.filter(cordoned=True).exists()

    def test_what_is_not_there(self, alice: SchemaClient, node: Node) -> None:
        assert alice.patch("/api/v1/nodes/n9/", {"cordoned": True}, format="json").status_code == 404
        assert alice.patch("/api/v1/devices/x/", {"cordoned": True}, format="json").status_code == 404
        assert alice.patch("/api/v1/nodes/n1/", {"cordoned": "perhaps"}, format="json").status_code == 400


class TestDrift:
    def found(self, node: Node, device: Device | None, **fields: object) -> None:
        DeviceAllocation.objects.create(
            cluster_id=node.cluster_id, node=node, device=device, source="external", created_at=EPOCH,
            **{"namespace": "team-a", "pod_name": "p", "memory_mib": 1, "cores_percent": 0, **fields},
        )  # fmt: skip

    def test_none(self, alice: SchemaClient, node: Node) -> None:
        assert alice.get("/api/v1/drift/").json()["results"] == []

    def test_each_kind_is_named(self, alice: SchemaClient, node: Node) -> None:
        first, second = Device.objects.order_by("index")
        self.found(node, first, malformed="GPU-1,?")
        self.found(node, None, device_uuid="gone", pod_name="q")
        Device.objects.filter(pk=first.pk).update(external_slots=1, external_memory_mib=20_000)
        Device.objects.filter(pk=second.pk).update(used_slots=1, healthy=False)
        found = {entry["kind"]: entry for entry in alice.get("/api/v1/drift/").json()["results"]}
        assert set(found) == {"malformed", "unknown-device", "overcommitted", "unhealthy-device"}
        assert "20000 of 16000 MiB" in found["overcommitted"]["message"]
        assert found["malformed"]["holders"] == ["team-a/p"]
        Device.objects.filter(pk=second.pk).update(missing_since=EPOCH)
        kinds = {entry["kind"] for entry in alice.get("/api/v1/drift/").json()["results"]}
        assert "missing-device" in kinds

    def test_a_pod_of_ours_on_another_node_than_decided(
        self, cluster: Cluster, alice: SchemaClient, node: Node
    ) -> None:
        workload = make_workload(cluster, "gang", namespace="team-a", count=2)
        for replica, device in enumerate(Device.objects.order_by("index")):
            DeviceAllocation.objects.create(
                cluster=cluster, node=node, device=device, device_uuid=device.uuid, source="decided", created_at=EPOCH,
                workload=workload, pod_set="main", replica=replica, namespace="team-a", memory_mib=1, cores_percent=0,
            )  # fmt: skip
            Pod.objects.create(
                workload=workload, pod_set="main", replica=replica, namespace="team-a", name=f"gang-{replica}",
                uid=f"uid-{replica}", phase="Running", node_name="n1",
            )  # fmt: skip
        assert alice.get("/api/v1/drift/").json()["results"] == []
        Pod.objects.filter(replica=1).update(node_name="n2")
        [entry] = alice.get("/api/v1/drift/").json()["results"]
        assert (entry["kind"], entry["node"], entry["device"], entry["holders"]) == (
            "misplaced", "n1", "n1-1", ["team-a/gang-1"]
        )  # fmt: skip
        assert entry["message"] == "Pod team-a/gang-1: it is on node n2, but was assigned devices of n1"
        Pod.objects.filter(replica=1).update(terminating=True)
        assert alice.get("/api/v1/drift/").json()["results"] == []

    @pytest.mark.parametrize(
        ("devices", "named"),
        [(["n1-1", "n1-0"], None), (None, None), (["n1-0"], "n1-0"), (["n1-0", "n1-1", "x"], "n1-0, n1-1, x"),
         (["y", "n1-0"], "y, n1-0"), ([], "no device that can be read")],
    )  # fmt: skip
    def test_a_pod_of_ours_whose_annotations_name_other_devices(
        self, cluster: Cluster, alice: SchemaClient, node: Node, devices: list[str] | None, named: str | None
    ) -> None:
        workload = make_workload(cluster, "pair", namespace="team-a")
        for device in Device.objects.all():
            DeviceAllocation.objects.create(
                cluster=cluster, node=node, device=device, device_uuid=device.uuid, source="decided", created_at=EPOCH,
                workload=workload, pod_set="main", replica=0, namespace="team-a", memory_mib=1, cores_percent=0,
            )  # fmt: skip
        Pod.objects.create(
            workload=workload, pod_set="main", replica=0, namespace="team-a", name="pair-0", uid="uid-0",
            phase="Running", node_name="n1", devices=devices,
        )  # fmt: skip
        found = alice.get("/api/v1/drift/").json()["results"]
        assert [entry["kind"] for entry in found] == ([] if named is None else ["other-device"])
        if named is not None:
            assert found[0]["holders"] == ["team-a/pair-0"]
            assert found[0]["message"] == (
                f"Pod team-a/pair-0: its annotations name {named}, but n1-0, n1-1 were decided"
            )
        Pod.objects.update(phase="Succeeded")
        assert alice.get("/api/v1/drift/").json()["results"] == []

    def test_another_tenants_pods_are_not_named(self, charlie: SchemaClient, node: Node) -> None:
        self.found(node, None, device_uuid="gone")
        [entry] = charlie.get("/api/v1/drift/").json()["results"]
        assert (entry["holders"], entry["message"]) == ([], "unknown-device")


class TestUse:
    def test_what_was_measured_lately_is_shown_and_nothing_else(self, alice: SchemaClient, node: Node) -> None:
        first, second = Device.objects.order_by("index")
        now = start_of(timezone.now(), Resolution.RAW)
        DeviceSample.objects.create(device=first, at=now, memory_used_mib=512.0)
        DeviceSample.objects.create(device=second, at=now - timedelta(hours=1), memory_used_mib=1.0)
        [usage] = alice.get("/api/v1/device-usage/").json()["results"]
        assert (usage["uuid"], usage["memory_used_mib"], usage["utilization_percent"]) == ("n1-0", 512.0, None)

    def test_a_devices_history(self, alice: SchemaClient, node: Node) -> None:
        device = Device.objects.order_by("index")[0]
        now = start_of(timezone.now(), Resolution.RAW)
        for minutes in (1, 30, 90):
            at = now - timedelta(minutes=minutes)
            DeviceSample.objects.create(device=device, at=at, utilization_percent=float(minutes))
        url = "/api/v1/devices/n1-0/samples/"
        assert [row["utilization_percent"] for row in alice.get(url).json()["results"]] == [30.0, 1.0]
        assert len(alice.get(url, {"hours": 2}).json()["results"]) == 3
        assert alice.get(url, {"resolution": "1h"}).json()["results"] == []
        assert alice.get(url, {"resolution": "1w"}).status_code == 400
