"""Get: any word for a kind, and YAML that applies again unchanged, here and in an empty cluster."""

from typing import Any

import pytest
import yaml

from accounts.models import Cluster
from clusters.manifests import apply_manifests, get_manifests, to_yaml
from clusters.manifests.kinds import KINDS, kind_named
from foundation.exceptions import InvalidRequest
from queues.models import ClusterQueue, Workload
from tests import manifest_texts as texts
from tests.manifest_texts import Apply, joined

EVERYTHING = joined(
    texts.namespace(),
    texts.kueue("ResourceFlavor", "cpus", "{nodeLabels: {a: b}, nodeTaints: [{key: k, effect: NoSchedule}]}"),
    texts.kueue("Cohort", "all", "{fairSharing: {weight: 500m}}"),
    texts.kueue("Topology", "racks", "{levels: [{nodeLabel: rack}]}"),
    texts.kueue("AdmissionCheck", "billing", "{controllerName: example.com/billing}"),
    texts.cluster_queue(more="cohortName: all, stopPolicy: Hold, fairSharing: {weight: 2}").replace(
        "{name: main}", "{name: main, annotations: {kueueweb.io/preempt-for-devices: 'true', note: '1e3'}}"
    ),
    texts.local_queue(),
    texts.workload_priority_class("high", 5),
    texts.priority_class("pods", 2, default=True),
    texts.job(),
    texts.deployment(2),
    texts.workload(more="priority: 3"),
    "apiVersion: v1\nkind: Node\nmetadata: {name: n}\n"
    "spec: {unschedulable: true, taints: [{key: a, effect: NoExecute}]}\n"
    "status: {allocatable: {cpu: 1500m, memory: 4Gi}, capacity: {cpu: 2}, "
    "conditions: [{type: Ready, status: 'False'}]}\n",
    "apiVersion: config.kueue.x-k8s.io/v1beta1\nkind: Configuration\nwaitForPodsReady: {enable: true, timeout: 5m}\n"
    "fairSharing: {enable: false}\n",
    "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: gpus, namespace: team}\n"
    "spec: {hard: {limits.nvidia.com/gpumem: 10000, requests.cpu: 4}, scopes: [NotTerminating]}\n",
    "apiVersion: v1\nkind: LimitRange\nmetadata: {name: sizes, namespace: team}\n"
    "spec: {limits: [{type: Container, max: {cpu: 4}, defaultRequest: {cpu: 100m}}, {type: Pod, max: {cpu: 8}}]}\n",
    "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: kata}\nhandler: kata\n"
    "overhead: {podFixed: {cpu: 250m}}\nscheduling: {nodeSelector: {a: b}, tolerations: [{operator: Exists}]}\n",
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hami}\ndata: {config.yaml: 'deviceSplitCount: 4'}\n",
)


def read_all(cluster: Cluster) -> str:
    return to_yaml(manifest for kind in KINDS for manifest in get_manifests(cluster, kind))


def without_identity(text: str) -> list[Any]:
    """The objects but for what says which object of which server it is, and how it is there."""
    of_the_server = ("uid", "resourceVersion", "generation", "creationTimestamp")
    found = []
    for manifest in yaml.safe_load_all(text):
        manifest.pop("status", None)
        for key in of_the_server:
            manifest.get("metadata", {}).pop(key, None)
        found.append(manifest)
    return found


def test_what_is_read_applies_unchanged_and_makes_the_same_elsewhere(apply: Apply, cluster: Cluster) -> None:
    apply(EVERYTHING)
    text = read_all(cluster)
    assert {applied.action for applied in apply(text).objects} == {"unchanged"}
    assert read_all(cluster) == text
    other = Cluster.objects.create(name="other")
    jobless = to_yaml(
        manifest
        for kind in KINDS
        for manifest in get_manifests(cluster, kind)
        if kind not in ("Job", "Deployment", "Workload")
    )
    apply_manifests(other, jobless, user=None)
    there = to_yaml(manifest for kind in KINDS if kind != "Workload" for manifest in get_manifests(other, kind))
    assert without_identity(there) == without_identity(jobless)


def test_columns_beyond_kueue_are_annotations(apply: Apply, cluster: Cluster) -> None:
    apply(EVERYTHING)
    queue = ClusterQueue.objects.get()
    assert (queue.preempt_for_devices, queue.annotations) == (True, {"note": "1e3"})
    (manifest,) = get_manifests(cluster, "cq", "main")
    assert manifest["metadata"]["annotations"] == {"note": "1e3", "kueueweb.io/preempt-for-devices": "true"}


def test_a_configuration_of_v1beta1_is_kept_as_v1beta2(apply: Apply, cluster: Cluster) -> None:
    apply(EVERYTHING)
    cluster.refresh_from_db()
    assert cluster.configuration == {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "waitForPodsReady": {"timeout": "5m", "blockAdmission": True},
    }


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("ClusterQueue", "ClusterQueue"),
        ("clusterqueues", "ClusterQueue"),
        ("cq", "ClusterQueue"),
        ("clusterqueues.kueue.x-k8s.io", "ClusterQueue"),
        ("topologies", "Topology"),
        ("workloadpriorityclasses", "WorkloadPriorityClass"),
        ("flavors", "ResourceFlavor"),
        ("wl", "Workload"),
        ("deploy", "Deployment"),
    ],
)
def test_a_kind_has_many_words(word: str, kind: str) -> None:
    assert kind_named(word).name == kind


def test_an_unknown_word_is_refused_with_a_suggestion() -> None:
    with pytest.raises(InvalidRequest, match='Did you mean "ClusterQueue"'):
        kind_named("clusterqeue")


def test_by_name_and_by_namespace(apply: Apply, cluster: Cluster) -> None:
    apply(joined(texts.local_queue("a"), texts.local_queue("b"), texts.local_queue("a", in_namespace="other")))
    assert len(get_manifests(cluster, "lq")) == 3
    assert len(get_manifests(cluster, "lq", namespace="team")) == 2
    [found] = get_manifests(cluster, "lq", "a", "other")
    assert (found["metadata"]["name"], found["metadata"]["namespace"]) == ("a", "other")
    assert get_manifests(cluster, "lq", "missing") == []


def test_a_workloads_status_is_shown_and_skipped_when_applied(apply: Apply, cluster: Cluster) -> None:
    apply(texts.workload())
    condition = {"type": "QuotaReserved", "status": "False", "reason": "Misconfigured", "message": "no queue"}
    Workload.objects.update(conditions=[condition])
    (manifest,) = get_manifests(cluster, "workload")
    assert manifest["status"] == {"conditions": [condition]}
    assert [applied.action for applied in apply(to_yaml([manifest])).objects] == ["unchanged"]


def test_text_that_looks_like_something_else_is_quoted() -> None:
    values = ["1e3", "on", "5", "1:30", "2020-01-01", "~", "0x10", ".5", "a: b", "é\nü"]
    text = to_yaml([{"values": values}])
    assert yaml.safe_load(text) == {"values": values}
    assert "- '1e3'\n" in text


def test_a_limit_range_is_given_back_with_kubernetes_defaults(apply: Apply, cluster: Cluster) -> None:
    apply(
        "apiVersion: v1\nkind: LimitRange\nmetadata: {name: sizes, namespace: team}\n"
        "spec: {limits: [{type: Container, max: {cpu: 4}}]}\n"
    )
    (manifest,) = get_manifests(cluster, "limits")
    (entry,) = manifest["spec"]["limits"]
    assert entry == {"type": "Container", "max": {"cpu": "4"}, "default": {"cpu": "4"}, "defaultRequest": {"cpu": "4"}}


@pytest.mark.parametrize("word", ["quota", "quotas", "resourcequota", "resourcequotas"])
def test_a_quota_by_kubectl_s_words(word: str) -> None:
    assert kind_named(word).name == "ResourceQuota"


def test_a_quota_stays_as_it_was_written(cluster: Cluster) -> None:
    text = """apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: spelt}
spec:
  resourceGroups:
  - coveredResources: [example.com/tpu-memory, memory]
    flavors:
    - name: f
      resources: [{name: example.com/tpu-memory, nominalQuota: %s}, {name: memory, nominalQuota: 1024Mi}]
"""
    apply_manifests(cluster, text % "800Gi", user=None)
    (manifest,) = get_manifests(cluster, "cq", "spelt")
    cells = manifest["spec"]["resourceGroups"][0]["flavors"][0]["resources"]
    assert [cell["nominalQuota"] for cell in cells] == ["800Gi", "1024Mi"]
    again = apply_manifests(cluster, text % "858993459200", user=None)
    assert [applied.action for applied in again.objects] == ["unchanged"]
