"""The fragmentation of devices, and moves that would let a workload start. This is advice: nothing is changed."""

import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.scope import ClusterView
from scheduler.store.world_reading import read_world
from scheduling.advice.moves import MoveAdvice, MoveOutcome
from scheduling.devices.search.fragmentation_report import FragmentationReport
from scheduling.devices.search.moves import Move
from scheduling.model.placement import PodPlacement


class LargestRequestSerializer(serializers.Serializer[Any]):
    """The largest request of this many devices of a model on one node that still fits."""

    vendor = serializers.CharField()
    type = serializers.CharField()
    count = serializers.IntegerField()
    fits = serializers.BooleanField(help_text="False if no node has this many devices with a free slot.")
    memory_mib = serializers.IntegerField(help_text="Memory of each device.")
    cores_percent = serializers.IntegerField(help_text="The free cores of the tightest of these devices.")
    node = serializers.CharField(allow_blank=True)


class FragmentationReportSerializer(serializers.Serializer[Any]):
    """Fragmentation of a set of nodes; amounts in thousandths of a device."""

    devices = serializers.IntegerField()
    idle_milli = serializers.FloatField(help_text="Free memory of usable devices.")
    fragmented_milli = serializers.FloatField(
        allow_null=True, help_text="The mean part of it that a typical pod cannot use; null: no pod is known yet."
    )
    unused_devices = serializers.IntegerField()
    largest = LargestRequestSerializer(many=True)


class FragmentationSerializer(serializers.Serializer[Any]):
    """Fragmentation of all devices, of each flavor's devices, and of each node with devices."""

    cluster = FragmentationReportSerializer()
    flavors = serializers.DictField(child=FragmentationReportSerializer())
    nodes = serializers.DictField(child=FragmentationReportSerializer())


class PlaceSerializer(serializers.Serializer[Any]):
    """The place of a pod, now or in a plan."""

    pod_set = serializers.CharField(allow_blank=True)
    replica = serializers.IntegerField()
    node = serializers.CharField()
    devices = serializers.ListField(child=serializers.CharField(), help_text="UUIDs.")


class MoveSerializer(serializers.Serializer[Any]):
    """A running pod that would move to another place."""

    workload = serializers.CharField(allow_blank=True, help_text="namespace/name; empty if you may not see it.")
    current = PlaceSerializer()
    proposed = PlaceSerializer()


class MoveAdviceSerializer(serializers.Serializer[Any]):
    """The moves, in an order in which they can be made, and the place of the workload after them."""

    outcome = serializers.ChoiceField(choices=[outcome.value for outcome in MoveOutcome])
    message = serializers.CharField()
    moves = MoveSerializer(many=True)
    placement = PlaceSerializer(many=True)


class FragmentationView(ClusterView):
    """`fragmentation/`."""

    serializer_class = FragmentationSerializer

    @extend_schema(responses=FragmentationSerializer)
    def get(self, request: Request) -> Response:
        """Report idle devices, and the part of them that no workload can use."""
        found = read_world(self.cluster, time.time()).fragmentation()
        return Response(
            {
                "cluster": asdict(found.cluster),
                "flavors": _reports(found.flavors),
                "nodes": _reports(found.nodes),
            }
        )


class MovesView(ClusterView):
    """`workloads/{namespace}/{name}/moves/`."""

    serializer_class = MoveAdviceSerializer

    @extend_schema(responses=MoveAdviceSerializer)
    def get(self, request: Request, namespace: str, name: str) -> Response:
        """Return the fewest moves of running pods that would free devices for a waiting workload. This is advice:
        nothing is moved.
        """
        self.require("view", "Workload", namespace)
        world = read_world(self.cluster, time.time(), [(namespace, name)])
        if world.workload(f"{namespace}/{name}") is None:
            raise self.missing("Workload", namespace, name)
        return Response(self._advice(world.advise_moves(f"{namespace}/{name}")))

    def _advice(self, advice: MoveAdvice) -> dict[str, Any]:
        plan = advice.plan
        moves = plan.moves if plan is not None else ()
        placement = plan.placement.pods if plan is not None else ()
        return {
            "outcome": advice.outcome,
            "message": advice.message,
            "moves": [self._move(move) for move in moves],
            "placement": [_place(pod) for pod in placement],
        }

    def _move(self, move: Move) -> dict[str, Any]:
        """Return a move; the pod's name only for users who may see its tenant."""
        shown = self.access.sees(move.workload_key.partition("/")[0])
        hidden = {} if shown else {"pod_set": "", "replica": 0}
        return {
            "workload": move.workload_key if shown else "",
            "current": _place(move.source) | hidden,
            "proposed": _place(move.target) | hidden,
        }


def _reports(reports: Mapping[str, FragmentationReport]) -> dict[str, Any]:
    return {name: asdict(report) for name, report in reports.items()}


def _place(pod: PodPlacement) -> dict[str, Any]:
    devices = [part.uuid for part in pod.slices]
    return {"pod_set": pod.pod_set, "replica": pod.replica, "node": pod.node, "devices": devices}
