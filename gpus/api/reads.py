"""The reads of the API of gpus beyond plain lists of rows: drift, and the measured use."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.postgres.aggregates import JSONBAgg
from django.db.models import F, Q, QuerySet
from django.db.models.expressions import RawSQL

from accounts.models import AuditFinding
from foundation.time_series import Resolution
from gpus.models import AllocationSource, ContainerSample, Device, DeviceAllocation, DeviceSample
from scheduling.model.device import MIG_MODE

STALE_AFTER = timedelta(seconds=4 * Resolution.RAW)
"""The age from which a sample does not describe the present."""


@dataclass(frozen=True, slots=True)
class Drift:
    """A difference between the cluster's report and the decided state.

    `kind`: `unknown-device` (a slice names a device that its node does not list), `malformed` (an annotation that
    cannot be read: it counts as the whole device), `misplaced` (a pod of ours is on another node than was decided),
    `other-device` (a pod of ours is on its node, but its annotations name other devices than were decided), `leftover`
    (a pod still runs although its workload has released its devices), `overcommitted` (more is held than the device
    has), `missing-device` (slices of a device that its node no longer lists), `unhealthy-device` (a device that became
    unhealthy while in use), `inconsistent` (the auditor found rows, pods or pushed decisions that contradict each
    other).
    """

    cluster_id: int
    kind: str
    node: str
    device: str
    message: str
    namespaces: frozenset[str]
    holders: tuple[str, ...]


def drifts(*clusters: int) -> Iterator[Drift]:
    """Yield every drift of these clusters, given by their keys, by node and device. The number of queries is at most
    seven, however many clusters there are."""
    for finding in AuditFinding.objects.filter(cluster_id__in=clusters, confirmed=True):
        message = f"{finding.check_name}: {finding.subject}: {finding.message}"
        namespaces = frozenset({finding.namespace} if finding.namespace else ())
        yield Drift(finding.cluster_id, "inconsistent", finding.node, "", message, namespaces, ())
    found = DeviceAllocation.objects.filter(cluster_id__in=clusters, source=AllocationSource.EXTERNAL)
    odd = (
        found.filter(Q(device=None) | ~Q(malformed=""))
        .select_related("node")
        .order_by("node__name", "device_uuid", "pk")
    )
    for allocation in odd:
        kind = "malformed" if allocation.malformed else "unknown-device"
        said = (
            f"the annotation {allocation.malformed!r} cannot be read, so the whole device counts as held"
            if allocation.malformed
            else f"it names a device {allocation.device_uuid} that the node does not list"
        )
        holder = f"{allocation.namespace}/{allocation.pod_name}"
        yield Drift(
            allocation.cluster_id, kind, allocation.node.name, allocation.device_uuid, f"Pod {holder}: {said}",
            frozenset({allocation.namespace}), (holder,),
        )  # fmt: skip
    yield from _left_over(found)
    yield from _misplaced(clusters)
    yield from _on_other_devices(clusters)
    over = (
        Q(slots__lt=F("used_slots") + F("external_slots"))
        | Q(memory_mib__lt=F("used_memory_mib") + F("external_memory_mib"))
        | (Q(cores_percent__lt=F("used_cores_percent") + F("external_cores_percent")) & ~Q(mode=MIG_MODE))
    )
    held = Q(used_slots__gt=0) | Q(external_slots__gt=0)
    sick = held & (Q(healthy=False) | Q(missing_since__isnull=False))
    rows = Device.objects.filter(over | sick, node__cluster_id__in=clusters).select_related("node")
    for device in rows.prefetch_related("allocations__workload").order_by("node__name", "index"):
        yield _device_drift(device)


_PODS_OF_OURS = """
SELECT pod.uid FROM queues_pod AS pod JOIN queues_workload AS workload ON workload.id = pod.workload_id
WHERE workload.status = 'Finished' OR workload.quota_reserved_at IS NULL
"""


def _left_over(found: QuerySet[DeviceAllocation]) -> Iterator[Drift]:
    """Yield a drift for each slice of a pod that still runs, although its workload has finished or lost its quota."""
    ours = RawSQL(_PODS_OF_OURS, [])  # noqa: S611 - a constant
    rows = found.filter(pod_uid__in=ours).select_related("node")
    for allocation in rows.order_by("node__name", "device_uuid", "pk"):
        holder = f"{allocation.namespace}/{allocation.pod_name}"
        said = "its workload has released its devices, but it still runs; its slice counts as external until it ends"
        yield Drift(
            allocation.cluster_id, "leftover", allocation.node.name, allocation.device_uuid, f"Pod {holder}: {said}",
            frozenset({allocation.namespace}), (holder,),
        )  # fmt: skip


def _bound(clusters: Collection[int]) -> QuerySet[Any]:
    """Return decisions together with the bound pods for which they were made."""
    seen = DeviceAllocation.objects.filter(cluster_id__in=clusters, source=AllocationSource.DECIDED).annotate(
        seen_pod_set=F("workload__pods__pod_set"),
        seen_replica=F("workload__pods__replica"),
        seen_phase=F("workload__pods__phase"),
        seen_terminating=F("workload__pods__terminating"),
        seen_node=F("workload__pods__node_name"),
        seen_name=F("workload__pods__name"),
        seen_devices=F("workload__pods__devices"),
    )
    return seen.filter(
        seen_pod_set=F("pod_set"), seen_replica=F("replica"), seen_phase__in=("Pending", "Running"), seen_node__gt="",
        seen_terminating=False,
    )  # fmt: skip


def _on_other_devices(clusters: Collection[int]) -> Iterator[Drift]:
    pods = (
        _bound(clusters)
        .filter(seen_node=F("node__name"), seen_devices__isnull=False)
        .values("cluster_id", "node__name", "namespace", "seen_name", "seen_devices")
        .annotate(decided=JSONBAgg("device_uuid", distinct=True))
        .exclude(decided__contains=F("seen_devices"), decided__contained_by=F("seen_devices"))
        .order_by("node__name", "seen_name")
    )
    for pod in pods:
        holder, decided = f"{pod['namespace']}/{pod['seen_name']}", sorted(pod["decided"])
        named = ", ".join(pod["seen_devices"]) or "no device that can be read"
        said = f"its annotations name {named}, but {', '.join(decided)} were decided"
        device = next((uuid for uuid in decided if uuid not in pod["seen_devices"]), decided[0])
        yield Drift(
            pod["cluster_id"], "other-device", pod["node__name"], device, f"Pod {holder}: {said}",
            frozenset({pod["namespace"]}), (holder,),
        )  # fmt: skip


def _misplaced(clusters: Collection[int]) -> Iterator[Drift]:
    pod = ("node__name", "cluster_id", "seen_name")
    strayed = _bound(clusters).exclude(seen_node=F("node__name")).order_by(*pod, "device_uuid").distinct(*pod)
    columns = ("cluster_id", "node__name", "namespace", "seen_name", "seen_node", "device_uuid")
    for cluster, node, namespace, name, seen_on, device in strayed.values_list(*columns):
        holder = f"{namespace}/{name}"
        said = f"it is on node {seen_on}, but was assigned devices of {node}"
        yield Drift(cluster, "misplaced", node, device, f"Pod {holder}: {said}", frozenset({namespace}), (holder,))


def _device_drift(device: Device) -> Drift:
    allocations = list(device.allocations.all())
    holders = tuple(dict.fromkeys(_holder(allocation) for allocation in allocations))
    if device.missing_since is not None:
        kind, said = "missing-device", f"its node has not listed it since {device.missing_since:%Y-%m-%d %H:%M} UTC"
    elif not device.healthy:
        kind, said = "unhealthy-device", "it is unhealthy and takes no new slices"
    else:
        kind, said = "overcommitted", _over(device)
    return Drift(
        device.node.cluster_id,
        kind,
        device.node.name,
        device.uuid,
        f"Device {device.index} ({device.type}): {said}",
        frozenset(allocation.namespace for allocation in allocations),
        holders,
    )


def _holder(allocation: DeviceAllocation) -> str:
    if allocation.workload is not None:
        return allocation.workload.key
    return f"{allocation.namespace}/{allocation.pod_name}"


def _over(device: Device) -> str:
    parts = [
        f"{used + found} of {total} {unit}"
        for used, found, total, unit in (
            (device.used_slots, device.external_slots, device.slots, "slots"),
            (device.used_memory_mib, device.external_memory_mib, device.memory_mib, "MiB"),
            (device.used_cores_percent, device.external_cores_percent, device.cores_percent, "% cores"),
        )
        if used + found > total
    ]
    return f"more is held than the device has: {', '.join(parts)}"


def latest_samples(clusters: Collection[int], now: datetime) -> QuerySet[DeviceSample]:
    """Return the last sample of each device, if it is recent; other devices are absent."""
    recent = DeviceSample.objects.filter(
        device__node__cluster_id__in=clusters, resolution=Resolution.RAW, at__gte=now - STALE_AFTER
    )
    return recent.order_by("device_id", "-at").distinct("device_id").select_related("device__node")


def device_samples(cluster_id: int, uuid: str, resolution: Resolution, since: datetime) -> Any:
    """Return a device's samples in time order, as dicts."""
    rows = DeviceSample.objects.filter(
        device__node__cluster_id=cluster_id, device__uuid=uuid, resolution=resolution, at__gte=since
    )
    return rows.order_by("at").values(
        "at", "memory_used_mib", "memory_used_mib_peak", "utilization_percent", "utilization_percent_peak",
        "temperature_celsius", "power_watts",
    )  # fmt: skip


def container_samples(
    cluster_id: int, namespace: str, resolution: Resolution, since: datetime, pods: Collection[str]
) -> Any:
    """Return the samples of some pods' containers in time order, as dicts."""
    rows = ContainerSample.objects.filter(
        device__node__cluster_id=cluster_id,
        namespace=namespace,
        pod_name__in=pods,
        resolution=resolution,
        at__gte=since,
    )
    return rows.order_by("at", "pod_name", "container").values(
        "at", "pod_name", "container", "memory_used_mib", "utilization_percent", "last_kernel_seconds",
        uuid=F("device__uuid"),
    )  # fmt: skip
