"""Stores slices that foreign pods hold by their annotations, even if they exceed a device."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from django.utils import timezone

from foundation.transactions import hardware_transaction
from gpus.annotations import FoundAllocation
from gpus.models import AllocationSource, Device, DeviceAllocation, Node
from gpus.services.counters import recount
from scheduling.model.device import DeviceSlice, MigInstance

_MAX_UUID: Final = 128
_LARGEST: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class ExternalPod:
    """A foreign pod with slices, and the content of its annotations."""

    namespace: str
    name: str
    uid: str
    allocation: FoundAllocation


def record_external(cluster_id: int, pods: Sequence[ExternalPod], now: datetime | None = None) -> bool:
    """Store the slices that these pods hold, in place of the stored slices of the same pods.

    Returns whether any slice changed. A pod whose annotations are unreadable counts as whole devices of its node, as
    many as it requests, until the annotations can be read. A slice of a device that its node does not list is stored
    without a device. Pods on unknown nodes are skipped: the node must be stored first.
    """
    with hardware_transaction(cluster_id):
        nodes = _nodes(cluster_id, {pod.allocation.node for pod in pods})
        stored = _stored(cluster_id, [pod.uid for pod in pods])
        touched: set[int] = set()
        changed = False
        for pod in pods:
            node = nodes.get(pod.allocation.node)
            wanted = _rows(cluster_id, node, pod, now or timezone.now()) if node else []
            present = stored.get(pod.uid, [])
            if [_identity(row) for row in wanted] == [_identity(row) for row in present]:
                continue
            touched |= {row.device_id for row in (*wanted, *present) if row.device_id is not None}
            DeviceAllocation.objects.filter(pk__in=[row.pk for row in present]).delete()
            DeviceAllocation.objects.bulk_create(wanted)
            changed = True
        recount(touched)
    return changed


def forget_external(cluster_id: int, uids: Collection[str]) -> bool:
    """Forget these pods, which have ended. Returns whether they held any slices."""
    return _forget(cluster_id, DeviceAllocation.objects.filter(pod_uid__in=list(uids)))


def keep_external(cluster_id: int, uids: Collection[str]) -> bool:
    """Remove every pod except these, after a complete list of the cluster was read."""
    return _forget(cluster_id, DeviceAllocation.objects.exclude(pod_uid__in=list(uids)))


def link_external(node: Node) -> set[int]:
    """Link external slices to devices that were listed only later; returns the devices' keys."""
    by_uuid = dict(node.devices.values_list("uuid", "pk"))
    linked: set[int] = set()
    waiting = DeviceAllocation.objects.filter(node=node, source=AllocationSource.EXTERNAL, device__isnull=True)
    for pk, uuid in waiting.values_list("pk", "device_uuid"):
        if uuid in by_uuid:
            DeviceAllocation.objects.filter(pk=pk).update(device=by_uuid[uuid])
            linked.add(by_uuid[uuid])
    return linked


def _forget(cluster_id: int, rows: Any) -> bool:
    rows = rows.filter(cluster_id=cluster_id, source=AllocationSource.EXTERNAL)
    if not rows.exists():
        return False
    with hardware_transaction(cluster_id):
        gone = list(rows.values_list("pk", "device_id"))
        DeviceAllocation.objects.filter(pk__in=[pk for pk, _ in gone]).delete()
        recount({device_id for _, device_id in gone if device_id is not None})
    return True


def _nodes(cluster_id: int, names: Iterable[str]) -> dict[str, Node]:
    rows = Node.objects.filter(cluster_id=cluster_id, name__in=list(names)).prefetch_related("devices")
    return {row.name: row for row in rows}


def _stored(cluster_id: int, uids: Sequence[str]) -> dict[str, list[DeviceAllocation]]:
    rows = DeviceAllocation.objects.filter(
        cluster_id=cluster_id, source=AllocationSource.EXTERNAL, pod_uid__in=list(uids)
    ).order_by("device_uuid", "id")
    stored: dict[str, list[DeviceAllocation]] = {}
    for row in rows:
        stored.setdefault(row.pod_uid, []).append(row)
    return stored


def _rows(cluster_id: int, node: Node, pod: ExternalPod, now: datetime) -> list[DeviceAllocation]:
    devices = {device.uuid: device for device in node.devices.all()}
    common: dict[str, Any] = {
        "cluster_id": cluster_id,
        "node": node,
        "source": AllocationSource.EXTERNAL,
        "namespace": pod.namespace,
        "pod_name": pod.name,
        "pod_uid": pod.uid,
        "created_at": now,
    }
    malformed = pod.allocation.malformed or _out_of_range(pod.allocation)
    if malformed:
        whole = sorted(devices.values(), key=lambda device: (device.index, device.uuid))[: pod.allocation.asked]
        rows = [_whole_device(device, malformed, common) for device in whole]
        return sorted(rows, key=lambda row: row.device_uuid)
    rows = [
        DeviceAllocation(
            device=devices.get(held.uuid),
            device_uuid=held.uuid,
            memory_mib=held.memory_mib,
            cores_percent=held.cores_percent,
            slots=held.slots,
            mig_instance=mig and {"profile": mig.profile, "start": mig.placement.start, "size": mig.placement.size},
            qos_policy=held.qos_policy,
            app_class=held.app_class,
            **common,
        )
        for held, mig in _by_instance(pod.allocation.slices)
    ]
    return sorted(rows, key=lambda row: row.device_uuid)


def _by_instance(slices: Iterable[DeviceSlice]) -> Iterator[tuple[DeviceSlice, MigInstance | None]]:
    """Yield each slice with its first MIG instance; further instances follow as slices without amounts."""
    for held in slices:
        yield held, held.mig
        for mig in held.further_mig:
            yield replace(held, memory_mib=0, cores_percent=0, slots=0), mig


def _out_of_range(allocation: FoundAllocation) -> str:
    """Return why a readable allocation is impossible; annotations are untrusted."""
    for held in allocation.slices:
        if len(held.uuid) > _MAX_UUID or not (
            0 <= held.memory_mib <= _LARGEST and 0 <= held.cores_percent <= _LARGEST and 0 < held.slots <= _LARGEST
        ):
            return f"{held.memory_mib} MiB and {held.cores_percent} % of {held.uuid[:_MAX_UUID]!r} are out of range"
    return ""


def _whole_device(device: Device, malformed: str, common: dict[str, Any]) -> DeviceAllocation:
    return DeviceAllocation(
        device=device,
        device_uuid=device.uuid,
        memory_mib=device.memory_mib,
        cores_percent=device.cores_percent,
        slots=device.slots,
        malformed=malformed,
        **common,
    )


def _identity(row: DeviceAllocation) -> tuple[Any, ...]:
    return (
        row.node_id,
        row.device_id,
        row.device_uuid,
        row.memory_mib,
        row.cores_percent,
        row.slots,
        row.mig_instance,
        row.qos_policy,
        row.app_class,
        row.malformed,
    )
