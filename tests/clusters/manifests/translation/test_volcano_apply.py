"""Volcano's objects over apply and REST: stored as ours, decided, told; and as another tenant, and twice at once."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from accounts.models import Cluster, Role, RoleBinding
from clusters.manifests import apply_manifests, get_manifests, to_yaml
from foundation.exceptions import ManifestErrors, NotPermitted, UnsupportedKind
from gpus.models import Node
from queues.models import ClusterQueue, Cohort, Job, Workload
from scheduler.housekeeping.node_quotas import follow_nodes
from scheduler.leader.engine import Engine
from tests.factories import START
from tests.manifest_texts import Apply, actions, joined

pytestmark = pytest.mark.django_db(transaction=True)

QUEUE = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: research}
spec:
  weight: 3
  reclaimable: false
  guarantee: {resource: {cpu: 2}}
  capability: {cpu: 6, memory: 32Gi}
"""
LOCAL_QUEUE = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: research, namespace: team}
spec: {clusterQueue: research}
"""
JOB = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train, namespace: team}
spec:
  queue: research
  minAvailable: 2
  policies: [{event: Unknown, action: RestartJob}]
  tasks:
  - name: worker
    replicas: 3
    template:
      spec:
        containers: [{name: main, image: busybox, resources: {requests: {cpu: 2}}}]
"""
PODS = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: pair, namespace: team}
spec: {minMember: 2, queue: research}
---
apiVersion: v1
kind: Pod
metadata: {name: pair-0, namespace: team, annotations: {scheduling.k8s.io/group-name: pair}}
spec: {containers: [{name: main, image: busybox}]}
---
apiVersion: v1
kind: Pod
metadata: {name: pair-1, namespace: team, annotations: {scheduling.k8s.io/group-name: pair}}
spec: {containers: [{name: main, image: busybox}]}
"""


def test_a_queue_is_a_cluster_queue_below_a_cohort_that_divides_the_nodes(apply: Apply, cluster: Cluster) -> None:
    assert actions(apply(QUEUE)) == [
        "ClusterQueue research created",
        "ResourceFlavor default created",
        "Cohort root created",
    ]
    queue = ClusterQueue.objects.get()
    assert (queue.cohort_name, int(queue.fair_sharing_weight), queue.never_reclaimed) == ("root", 3, True)
    cohort = Cohort.objects.get()
    assert cohort.sharing_policy == "proportion"
    assert (cohort.node_quotas[0]["resource"], cohort.node_quotas[0]["headroom"]) == ("cpu", "2")


def test_a_queue_that_is_applied_again_changes_nothing_and_leaves_the_cohort_alone(apply: Apply) -> None:
    apply(QUEUE)
    Cohort.objects.update(sharing_policy="capacity")
    assert actions(apply(QUEUE)) == ["ClusterQueue research unchanged"]
    assert Cohort.objects.get().sharing_policy == "capacity"


def test_a_cohort_that_was_there_is_not_pruned_with_the_set(apply: Apply) -> None:
    apply(QUEUE, applied_set="volcano")
    apply(QUEUE, applied_set="volcano", prune=True)
    assert Cohort.objects.filter(deletion_requested_at=None).exists()


def test_what_was_translated_reads_back_as_ours(apply: Apply, cluster: Cluster) -> None:
    apply(joined(QUEUE, LOCAL_QUEUE, JOB))
    kinds = ("ResourceFlavor", "Cohort", "ClusterQueue", "LocalQueue", "Job")
    again = apply(to_yaml(manifest for kind in kinds for manifest in get_manifests(cluster, kind)))
    assert {applied.action for applied in again.objects} == {"unchanged"}
    assert {applied.action for applied in apply(joined(QUEUE, JOB)).objects} == {"unchanged"}


def test_a_job_starts_with_the_pods_that_it_needs_and_says_what_is_lost(apply: Apply, cluster: Cluster) -> None:
    node = {"cpu": 6000, "memory": 64 * 2**30, "pods": 110}
    Node.objects.create(cluster=cluster, name="n1", created_at=START, allocatable=node)
    apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n")
    result = apply(joined(QUEUE, LOCAL_QUEUE, JOB.replace("replicas: 3", "replicas: 4")))
    assert result.warnings == ("Job team/train: spec.policies[0]: is lost: no counterpart of Unknown -> RestartJob",)
    follow_nodes(cluster)
    Engine(cluster, "test").run()
    workload = Workload.objects.get()
    assert workload.status == "Admitted"
    assert [pod_set.admitted_count for pod_set in workload.pod_sets.all()] == [3]  # the capability is 6 cpu
    (shown,) = get_manifests(cluster, "Workload")
    (condition,) = [each for each in shown["status"]["conditions"] if each["type"] == "Translated"]
    assert condition["reason"] == "WithLosses"
    assert "spec.policies[0] -> lost: no counterpart of Unknown -> RestartJob" in condition["message"]


def test_pods_of_a_group_start_together(apply: Apply) -> None:
    assert actions(apply(PODS)) == ["Pod team/pair-0 created", "Pod team/pair-1 created"]
    workload = Workload.objects.get()
    assert (workload.name, workload.queue_name) == ("pair", "research")
    assert sum(pod_set.count for pod_set in workload.pod_sets.all()) == 2


def test_a_group_without_pods_is_refused_with_what_to_write(apply: Apply) -> None:
    with pytest.raises(UnsupportedKind, match="pod-group-total-count"):
        apply(PODS.partition("---")[0])


def test_a_list_is_translated_too(apply: Apply) -> None:
    items = [f"- {text.strip()}".replace("\n", "\n  ") for text in (QUEUE, JOB)]
    text = "apiVersion: v1\nkind: List\nitems:\n" + "\n".join(items)
    assert len(apply(text).objects) == 4


def test_mistakes_of_a_list_name_its_item_and_nothing_is_stored(apply: Apply) -> None:
    item = f"- {JOB.strip()}".replace("\n", "\n  ").replace("replicas: 3", "replicas: 1")
    with pytest.raises(ManifestErrors) as caught:
        apply(f"apiVersion: v1\nkind: List\nitems:\n{item}")
    assert [error.path for error in caught.value.errors] == ["items[0].spec.minAvailable"]
    assert not Job.objects.exists()


def test_a_mistake_in_the_pods_names_the_kind_that_they_became(apply: Apply) -> None:
    with pytest.raises(ManifestErrors) as caught:
        apply(JOB.replace("cpu: 2}}", "cpu: two}}"))
    assert all(error.path.startswith("(as Job).spec.template") for error in caught.value.errors)


def test_a_tenant_submits_jobs_of_its_namespace_and_no_queues(cluster: Cluster) -> None:
    tenant = User.objects.create(username="researcher")
    RoleBinding.objects.create(username=tenant.username, role=Role.SUBMITTER, namespace="team")
    apply_manifests(cluster, JOB, user=tenant)
    assert Workload.objects.get().submitted_by == "researcher"
    for text in (QUEUE, JOB.replace("namespace: team", "namespace: other"), PODS.replace("team", "other")):
        with pytest.raises(NotPermitted):
            apply_manifests(cluster, text, user=tenant)
    assert not Cohort.objects.exists()
