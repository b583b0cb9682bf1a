"""A new leader reads from the rows what the old one has in its memory, whatever happened before.

With and without a topology and waitForPodsReady; the length follows the Hypothesis profile: 1 run each, and 20 with
`--hypothesis-profile=long`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from hypothesis import settings

from accounts.models import Cluster
from clusters.manifests import apply_manifests
from gpus.models import Node
from queues.models import ClusterQueue, LocalQueue, PodSet, ResourceFlavor, Workload
from queues.services import workloads
from queues.services.admission_checks import CheckAnswer, set_check_state
from scheduler.leader.engine import Engine
from scheduling.model.vocabulary import AdmissionCheckStatus
from tests.acceptance.device_operations import Operations, make_queues
from tests.engines import facts, read_anew
from tests.factories import START, make_cluster

pytestmark = pytest.mark.django_db(transaction=True)

RUNS = 20 if settings().max_examples >= 2_000 else 1
ROUNDS = 50
MAX_RUNS = 20
CHECK = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: approval}
spec: {controllerName: example.com/approval}
"""
TOPOLOGY = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: Topology
metadata: {name: hosts}
spec: {levels: [{nodeLabel: kubernetes.io/hostname}]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: approval}
spec: {controllerName: kueue.x-k8s.io/provisioning-request}
"""
"""Every workload has a topology, and in one ClusterQueue it waits for the check."""
WAIT = {"timeout": "200s", "recoveryTimeout": "100s", "requeuingStrategy": {"backoffLimitCount": 2}}
READY, RETRY, REJECTED = AdmissionCheckStatus.READY, AdmissionCheckStatus.RETRY, AdmissionCheckStatus.REJECTED


class Life(Operations):
    """Also what happens to workloads between a queue and their end."""

    def __init__(self, cluster: Cluster, chance: random.Random) -> None:
        super().__init__(cluster, chance)
        self.now = START
        more: dict[Callable[[], object], int] = {
            self.stop_queue: 3, self.start_queues: 6, self.answer: 25, self.get_ready: 15, self.lose_pods: 4,
            self.reclaim: 4, self.move: 2, self.remove: 2, self.fail: 2,
        }  # fmt: skip
        self._table.update(more)

    def take(self) -> None:
        """Nodes have a name for topologies as well."""
        super().take()
        for node in Node.objects.filter(labels={}):
            Node.objects.filter(pk=node.pk).update(labels={"kubernetes.io/hostname": node.name})

    def fail(self) -> None:
        """A node of a workload failed."""
        for _, name in self._some(status="Admitted"):
            nodes = [node for node in PodSet.objects.get(workload__name=name).nodes if node]
            Workload.objects.filter(name=name).update(unhealthy_nodes=nodes[:1])

    def stop_queue(self) -> None:
        """An administrator stops a queue."""
        policy, name = self._chance.choice(["Hold", "HoldAndDrain"]), self._chance.choice("ab")
        if self._chance.random() < 0.5:
            ClusterQueue.objects.filter(name=name).update(stop_policy=policy)
        else:
            LocalQueue.objects.filter(name=name).update(stop_policy=policy)

    def start_queues(self) -> None:
        """And opens all of them."""
        ClusterQueue.objects.update(stop_policy="None")
        LocalQueue.objects.update(stop_policy="None")

    def answer(self) -> None:
        """Who decides on an admission check says something."""
        for row in Workload.objects.filter(status="QuotaReserved").order_by("pk")[:3]:
            for check in row.admission_check_states:
                answer = CheckAnswer(self._chance.choice([READY] * 5 + [RETRY, REJECTED]), "so be it")
                set_check_state(self.cluster, row.namespace, row.name, check["name"], answer, actor="bob", now=self.now)

    def get_ready(self) -> None:
        """Pods run."""
        workloads.record_pods_ready(self.cluster, self._some(status="Admitted", pods_ready_at=None), now=self.now)

    def lose_pods(self) -> None:
        """And do not any more."""
        keys = self._some(status="Admitted", pods_ready_at__isnull=False)
        workloads.record_pods_ready(self.cluster, keys, ready=False, recovering=True, now=self.now)

    def reclaim(self) -> None:
        """A pod has ended for good."""
        names = [name for _, name in self._some(status="Admitted")]
        PodSet.objects.filter(workload__name__in=names, count__gt=1).update(reclaimable_count=1)

    def move(self) -> None:
        """A waiting workload goes to another queue."""
        names = [name for _, name in self._some(status="Pending")]
        Workload.objects.filter(name__in=names).update(queue_name=self._chance.choice("ab"))

    def remove(self) -> None:
        """A workload is deleted."""
        workloads.delete_workloads(self.cluster, self._some(), actor="alice", now=self.now)


@pytest.mark.parametrize("topology", [False, True], ids=["", "topology"])
@pytest.mark.parametrize("waits", [False, True], ids=["", "waitForPodsReady"])
@pytest.mark.parametrize("seed", range(RUNS))
def test_a_new_leader_knows_what_the_old_one_knew(seed: int, waits: bool, topology: bool) -> None:
    chance, now = random.Random(seed), START.timestamp() + 1000
    cluster = make_cluster(configuration={"waitForPodsReady": WAIT} if waits else {})
    make_queues(cluster)
    apply_manifests(cluster, TOPOLOGY if topology else CHECK, user=None)
    ResourceFlavor.objects.update(topology_name="hosts" if topology else "")
    ClusterQueue.objects.filter(name="b").update(admission_checks=[{"name": "approval", "onFlavors": []}])
    life, engine = Life(cluster, chance), Engine(cluster, "test", clock=lambda: now)
    for _ in range(ROUNDS):
        life.now = datetime.fromtimestamp(now, UTC)
        for _ in range(chance.randint(1, 8)):
            life.take()
        assert any(not engine.run().more for _ in range(MAX_RUNS)), "it does not come to rest"
        new, old = facts(*read_anew(engine, now)), facts(engine.world, engine.rows)
        differ = {name: (old.get(name), new.get(name)) for name in old | new if old.get(name) != new.get(name)}
        assert differ == {}, dict(life.counts)
        now += chance.choice([1, 60])
