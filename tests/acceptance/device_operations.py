"""Random operations on workloads, nodes, devices and foreign pods, as users, operators and the cluster make them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta

import orjson

from accounts.models import Cluster
from gpus.annotations import FoundAllocation
from gpus.models import Device, DeviceAllocation
from gpus.services import ExternalPod, forget_external, forget_node, observed_node, record_external, sync_node
from gpus.services.cordon import close_device, close_node
from queues.manifests.kueue_keys import ELASTIC_JOB, REPLACED_SLICE
from queues.models import Job, PodSet, Workload
from queues.services import workloads
from queues.services.job_changes import change_workload
from queues.services.pods import record_replicas_gone
from queues.services.workload_objects import workload_spec
from scheduling.model.device import DeviceSlice
from tests.factories import START, Quotas, make_cluster_queue, make_cohort, make_workload

NODES, DEVICES = 3, 4
SLOTS, MEMORY_MIB, CORES = 4, 16_000, 100
GPU, GPU_MEMORY, GPU_CORES = "nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpucores"
QUOTAS = {"a": {GPU: (14, 6), GPU_MEMORY: (90_000, 40_000)}, "b": {GPU: (12, 8), GPU_MEMORY: (80_000, 60_000)}}
"""ClusterQueue -> resource -> (nominal quota, borrowing limit); cores are not limited."""

MAX_WAITING = 25
ELASTIC = {ELASTIC_JOB: "true"}


@dataclass(frozen=True, slots=True)
class Asked:
    """What each pod of a workload asks for."""

    pods: int
    devices: int
    memory_mib: int
    cores_percent: int


def make_queues(cluster: Cluster) -> None:
    """Two ClusterQueues that borrow from each other; the more urgent preempt, for devices alone too."""
    make_cohort(cluster, "all")
    for name, cells in QUOTAS.items():
        limited = {resource: (nominal, borrowing, None) for resource, (nominal, borrowing) in cells.items()}
        quotas: Quotas = {"default-flavor": {**limited, GPU_CORES: 10**6}}
        make_cluster_queue(
            cluster,
            name,
            quotas,
            local_queue=name,
            cohort_name="all",
            within_cluster_queue="LowerPriority",
            reclaim_within_cohort="Any",
            preempt_for_devices=True,
        )


class Operations:
    """One random operation at a time. What is there is asked of the database, as other processes change it too."""

    def __init__(self, cluster: Cluster, chance: random.Random) -> None:
        self.cluster = cluster
        self.asked: dict[str, Asked] = {}
        self.placed: dict[str, int] = {}
        """The most pods that may be placed of a workload that has shrunk, until they have gone."""
        self.counts: Counter[str] = Counter()
        self._chance = chance
        self._foreign: list[str] = []
        self._table: dict[Callable[[], object], int] = {
            self.submit: 30, self.finish: 18, self.hold: 5, self.release: 6, self.cancel: 5, self.change_priority: 3,
            self.stop: 12, self.close_device: 3, self.open_device: 5, self.close_node: 1, self.open_node: 3,
            self.change_device: 6, self.lose_node: 1, self.find_node: 3, self.find_slices: 6, self.forget_slices: 7,
            self.shrink: 3, self.grow: 2, self.end_pod: 4,
        }  # fmt: skip
        for number in range(NODES):
            self._sync(number)

    def take(self) -> None:
        """Make one."""
        [operation] = self._chance.choices(list(self._table), list(self._table.values()))
        operation()
        self.counts.update(["all", operation.__name__])

    # -- users

    def submit(self) -> None:
        """A workload of one to three pods; some have a job, so that their pods must be heard to stop."""
        if Workload.objects.filter(status="Pending").count() >= MAX_WAITING:
            return
        chance, name = self._chance, f"w{len(self.asked)}"
        asked = Asked(
            chance.choice([1, 1, 1, 2, 3]),
            chance.choice([1, 1, 1, 1, 2, 4]),
            chance.choice([1, 2000, 4000, 5000, 8000, 8001, 16_000]),
            chance.choice([0, 0, 10, 30, 50, 51, 100]),
        )
        self.asked[name] = asked
        requests = {GPU: str(asked.devices), GPU_MEMORY: str(asked.memory_mib), GPU_CORES: str(asked.cores_percent)}
        made = make_workload(
            self.cluster,
            name,
            requests,
            count=asked.pods,
            queue_name=chance.choice("ab"),
            priority=chance.choice([0, 0, 10]),
            created_at=START + timedelta(seconds=len(self.asked)),
            annotations=ELASTIC,
        )
        if chance.random() < 0.3:
            job = Job.objects.create(
                cluster=self.cluster, namespace="team", name=name, kind="Job", manifest={}, created_at=START
            )
            Workload.objects.filter(pk=made.pk).update(job=job)

    def finish(self) -> None:
        """A job ends."""
        workloads.record_finished(self.cluster, self._some(status="Admitted"))

    def hold(self) -> None:
        """A user holds a workload back."""
        workloads.hold(self.cluster, self._some(active=True), actor="alice")

    def release(self) -> None:
        """And lets it go on."""
        workloads.release(self.cluster, self._some(active=False), actor="alice")

    def cancel(self) -> None:
        """A user gives up."""
        workloads.cancel(self.cluster, self._some(), actor="alice")

    def change_priority(self) -> None:
        """A workload becomes more or less urgent."""
        workloads.change_priority(self.cluster, self._some(), self._chance.choice([-5, 0, 10, 20]), actor="alice")

    def stop(self) -> None:
        """The pods of evicted workloads have stopped."""
        evicted = Workload.objects.filter(evicted_at__isnull=False).exclude(status="Finished").order_by("pk")
        workloads.record_stopped(self.cluster, list(evicted.values_list("namespace", "name")[:3]))

    def shrink(self) -> None:
        """An elastic job asks for fewer pods."""
        for row in self._held():
            asked = self.asked[row.name]
            if asked.pods < 2:
                continue
            spec = workload_spec(row)
            (pod_set,) = spec.pod_sets
            fewer = self._chance.randrange(asked.pods)
            change_workload(row, replace(spec, pod_sets=(replace(pod_set, count=fewer),)), actor="alice", now=START)
            self.placed.setdefault(row.name, asked.pods)
            self.asked[row.name] = replace(asked, pods=fewer)

    def grow(self) -> None:
        """An elastic job asks for more pods: a slice that replaces the one that holds quota."""
        for row in self._held():
            waiting = Workload.objects.filter(annotations__contains={REPLACED_SLICE: row.key})
            if waiting.exclude(status="Finished").exists() or not row.active:
                continue
            name, asked = f"w{len(self.asked)}", self.asked[row.name]
            self.asked[name] = replace(asked, pods=asked.pods + self._chance.choice([1, 2]))
            self.placed[name] = max(self.asked[name].pods, self.placed.get(row.name, 0))
            Workload.objects.create(
                cluster=self.cluster, namespace="team", name=name, queue_name=row.queue_name, priority=row.priority,
                created_at=START + timedelta(seconds=len(self.asked)), job=row.job,
                annotations={**ELASTIC, REPLACED_SLICE: row.key},
            )  # fmt: skip
            (pod_set,) = row.pod_sets.all()
            PodSet.objects.create(
                workload=Workload.objects.get(name=name), count=self.asked[name].pods, template=pod_set.template,
                requests={},
            )  # fmt: skip

    def end_pod(self) -> None:
        """A pod of a job that has more than it asks for has gone."""
        for row in Workload.objects.filter(status="Admitted", evicted_at=None).prefetch_related("pod_sets"):
            (pod_set,) = row.pod_sets.all()
            held = [replica for replica, node in enumerate(pod_set.nodes) if node]
            if len(held) > (pod_set.admitted_count or 0):
                record_replicas_gone(self.cluster, pod_set, {self._chance.choice(held)})
                return

    def _held(self) -> list[Workload]:
        rows = Workload.objects.filter(quota_reserved_at__isnull=False, evicted_at=None).exclude(status="Finished")
        found = list(rows.prefetch_related("pod_sets").select_related("job").order_by("pk"))
        return self._chance.sample(found, min(len(found), 1))

    def _some(self, **fields: object) -> list[tuple[str, str]]:
        found = Workload.objects.filter(**fields).exclude(status="Finished").order_by("pk")
        keys = list(found.values_list("namespace", "name"))
        return self._chance.sample(keys, min(len(keys), 1))

    # -- operators

    def close_device(self) -> None:
        """Cordon a device, now and then drain it."""
        close_device(self.cluster.pk, self._uuid(), cordoned=True, draining=self._chance.random() < 0.3)

    def open_device(self) -> None:
        """Open a device."""
        close_device(self.cluster.pk, self._uuid(), cordoned=False, draining=False)

    def close_node(self) -> None:
        """Cordon a node, now and then drain it."""
        close_node(self.cluster.pk, self._node(), cordoned=True, draining=self._chance.random() < 0.3)

    def open_node(self) -> None:
        """Open a node."""
        close_node(self.cluster.pk, self._node(), cordoned=False, draining=False)

    def _uuid(self) -> str:
        return f"{self._node()}-{self._chance.randrange(DEVICES)}"

    def _node(self) -> str:
        return f"n{self._chance.randrange(NODES)}"

    # -- the cluster

    def change_device(self) -> None:
        """A device shrinks or grows, falls ill or gets well, or is no longer listed; the node's others are as new."""
        change: dict[str, object] = self._chance.choice(
            [{"devmem": 9000}, {"devmem": 4000}, {"count": 2}, {"devcore": 50}, {"health": False}, {}, {}]
        )
        missing = self._chance.random() < 0.1
        self._sync(self._chance.randrange(NODES), self._chance.randrange(DEVICES), change, missing=missing)

    def lose_node(self) -> None:
        """A node leaves the cluster."""
        forget_node(self.cluster.pk, self._node())

    def find_node(self) -> None:
        """A node is there, as new."""
        self._sync(self._chance.randrange(NODES))

    def _sync(
        self, node: int, changed: int = -1, change: dict[str, object] | None = None, missing: bool = False
    ) -> None:
        devices = [
            {
                "id": f"n{node}-{index}", "index": index, "count": SLOTS, "devmem": MEMORY_MIB, "devcore": CORES,
                "type": "NVIDIA-Tesla V100", "mode": "hami-core", "health": True,
                **((change or {}) if index == changed else {}),
            }
            for index in range(DEVICES)
            if not (missing and index == changed)
        ]  # fmt: skip
        annotations = {"hami.io/node-nvidia-register": orjson.dumps(devices).decode()}
        amounts = {"cpu": "100", "memory": "1Ti", "pods": "110"}
        manifest = {"metadata": {"name": f"n{node}", "annotations": annotations}, "status": {"allocatable": amounts}}
        sync_node(self.cluster.pk, observed_node(manifest))

    def find_slices(self) -> None:
        """A foreign pod runs: on what is free or not, readable or not."""
        chance, node, uid = self._chance, self._node(), f"foreign-{len(self._foreign)}"
        held = tuple(
            DeviceSlice(
                f"{node}-{index}",
                node,
                memory_mib=chance.choice([1, 6000, 12_000]),
                cores_percent=chance.choice([0, 20, 70]),
                slots=chance.choice([1, 1, 2, 3]),
            )
            for index in chance.sample(range(DEVICES), chance.choice([1, 1, 2]))
        )
        malformed = "?" if chance.random() < 0.05 else ""
        self._foreign.append(uid)
        record_external(self.cluster.pk, [ExternalPod("other", uid, uid, FoundAllocation(node, held, malformed))])

    def forget_slices(self) -> None:
        """Foreign pods end, the oldest first."""
        oldest = DeviceAllocation.objects.filter(source="external").order_by("pk").values_list("pod_uid", flat=True)[:1]
        forget_external(self.cluster.pk, list(oldest))


def shrunken(device: Device) -> bool:
    """Whether the device has less than it had when it was new."""
    return (device.slots, device.memory_mib, device.cores_percent) != (SLOTS, MEMORY_MIB, CORES)
