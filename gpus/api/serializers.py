"""The shapes of gpus' JSON, for the OpenAPI document."""

from typing import Any

from rest_framework import serializers

from gpus.models import AllocationSource

Shape = serializers.Serializer[Any]


def _quantities(help_text: str) -> serializers.DictField:
    return serializers.DictField(child=serializers.CharField(), help_text=help_text)


class TaintSerializer(Shape):
    """A taint."""

    key = serializers.CharField()
    value = serializers.CharField(required=False, allow_blank=True)
    effect = serializers.CharField()


class DeviceTotalsSerializer(Shape):
    """The sums over the devices of a node."""

    devices = serializers.IntegerField()
    slots = serializers.IntegerField()
    used_slots = serializers.IntegerField()
    memory_mib = serializers.IntegerField()
    used_memory_mib = serializers.IntegerField()
    cores_percent = serializers.IntegerField()
    used_cores_percent = serializers.IntegerField()


class NodeConditionSerializer(Shape):
    """A condition of a node as the cluster reports it."""

    type = serializers.CharField()
    status = serializers.CharField()
    reason = serializers.CharField(allow_blank=True)
    message = serializers.CharField(allow_blank=True)
    last_transition_time = serializers.DateTimeField(allow_null=True)


class NodeSerializer(Shape):
    """A node."""

    cluster = serializers.CharField()
    name = serializers.CharField()
    labels = serializers.DictField(child=serializers.CharField())
    taints = TaintSerializer(many=True)
    ready = serializers.BooleanField()
    conditions = NodeConditionSerializer(many=True)
    unschedulable = serializers.BooleanField(help_text="Whether it is cordoned in the cluster.")
    cordoned = serializers.BooleanField(help_text="Whether it is cordoned in kueueweb.")
    draining = serializers.BooleanField(help_text="Whether it is being drained.")
    capacity = _quantities("Its allocatable resources; empty: unknown.")
    allocatable = _quantities("The maximum that its pods may request; empty: unknown, so there is no limit.")
    foreign_usage = _quantities("The requests of unmanaged pods.")
    device_totals = DeviceTotalsSerializer()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


class MigInstanceSerializer(Shape):
    """A MIG instance and the memory slices of the device that it takes."""

    profile = serializers.CharField()
    start = serializers.IntegerField()
    size = serializers.IntegerField()


class SliceSerializer(Shape):
    """A slice of a device. The holder is null if you may not see it."""

    workload = serializers.CharField(allow_null=True, help_text="`namespace/name`.")
    namespace = serializers.CharField(allow_null=True)
    pod_set = serializers.CharField(allow_blank=True)
    replica = serializers.IntegerField()
    container = serializers.CharField(allow_blank=True)
    source = serializers.ChoiceField(AllocationSource.choices)  # type: ignore[assignment]  # a field of that name
    memory_mib = serializers.IntegerField()
    cores_percent = serializers.IntegerField()
    mig = MigInstanceSerializer(many=True, required=False, help_text="Only for a device in MIG mode.")


class DeviceUnitsSerializer(Shape):
    """The vendor's terms for the device and its parts, and the unit of its cores."""

    device = serializers.CharField(help_text="`device`, `die`, `XPU`, ...")
    parts = serializers.CharField(help_text="The vendor's term for `slots`: `slots`, `MIG instances`, `DRS slices`.")
    cores_unit = serializers.CharField(help_text="`%`, `compute units`, `AI cores`, `cores`.")
    cores = serializers.IntegerField()
    used_cores = serializers.IntegerField()


class DeviceSerializer(Shape):
    """A device and the holders of its slices. Usage is the sum of kueueweb's decisions and other holders."""

    cluster = serializers.CharField()
    uuid = serializers.CharField()
    node = serializers.CharField()
    index = serializers.IntegerField()
    vendor = serializers.CharField()
    type = serializers.CharField(allow_blank=True)
    mode = serializers.CharField(allow_blank=True)
    numa = serializers.IntegerField()
    healthy = serializers.BooleanField()
    cordoned = serializers.BooleanField()
    draining = serializers.BooleanField(help_text="Whether it is being drained.")
    slots = serializers.IntegerField()
    used_slots = serializers.IntegerField()
    memory_mib = serializers.IntegerField()
    used_memory_mib = serializers.IntegerField()
    cores_percent = serializers.IntegerField()
    used_cores_percent = serializers.IntegerField()
    units = DeviceUnitsSerializer()
    missing_since = serializers.DateTimeField(allow_null=True)
    slices = SliceSerializer(many=True)
    mig_places = serializers.IntegerField(
        required=False, help_text="The memory slices that MIG instances divide; only for a device in MIG mode."
    )


class NodeDetailSerializer(NodeSerializer):
    """Return a node with its devices."""

    devices = DeviceSerializer(many=True)


class DeviceAllocationSerializer(SliceSerializer):
    """A slice with its device and node."""

    cluster = serializers.CharField()
    id = serializers.IntegerField()
    node = serializers.CharField()
    device = serializers.CharField(help_text="The device's UUID.")
    created_at = serializers.DateTimeField()
