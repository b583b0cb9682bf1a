"""Apply: whole or not at all, replacing what is there, with each user's rights; prune."""

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from accounts.models import Cluster, Namespace, Role, RoleBinding
from clusters.manifests import apply_manifests
from foundation.exceptions import InvalidRequest, ManifestErrors, NotPermitted
from queues.models import (
    ClusterQueue,
    Cohort,
    FlavorQuota,
    LocalQueue,
    ResourceFlavor,
    ResourceQuota,
    Workload,
    WorkloadEvent,
)
from queues.services.configuration import delete_object
from scheduling.manifest import MistakeReason
from tests import manifest_texts as texts
from tests.manifest_texts import Apply, actions, joined


def quota(mib: int) -> str:
    return (
        "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: gpus, namespace: team}\n"
        f"spec: {{hard: {{limits.nvidia.com/gpumem: {mib}}}}}\n"
    )


def hold_quota(**filters: object) -> None:
    Workload.objects.filter(**filters).update(
        quota_reserved_at=timezone.now(), status="QuotaReserved", cluster_queue_name="main"
    )


def test_objects_are_stored_in_the_order_that_they_need(apply: Apply) -> None:
    text = joined(
        texts.job(),
        texts.local_queue(),
        texts.cluster_queue(),
        texts.kueue("ResourceFlavor", "cpus"),
        texts.namespace(),
    )
    assert actions(apply(text)) == [
        "Job team/train created",
        "LocalQueue team/queue created",
        "ClusterQueue main created",
        "ResourceFlavor cpus created",
        "Namespace team created",
    ]
    assert Workload.objects.get().cluster_queue_name == "main"


def test_applied_again_nothing_changes(apply: Apply) -> None:
    text = joined(
        texts.namespace(),
        texts.cluster_queue(),
        texts.local_queue(),
        texts.job(),
        texts.deployment(2),
        texts.workload(),
    )
    apply(text)
    before = list(Workload.objects.order_by("pk").values())
    assert {action.rpartition(" ")[2] for action in actions(apply(text))} == {"unchanged"}
    assert list(Workload.objects.order_by("pk").values()) == before


def test_the_spec_is_replaced(apply: Apply) -> None:
    apply(texts.cluster_queue(cpu=10, more="cohortName: all, stopPolicy: Hold"))
    generation = ClusterQueue.objects.get().generation
    assert actions(apply(texts.cluster_queue(cpu=20))) == ["ClusterQueue main configured"]
    queue = ClusterQueue.objects.get()
    assert (queue.cohort_name, queue.stop_policy) == ("", "None")
    assert queue.generation > generation
    assert [cell.nominal_quota for cell in FlavorQuota.objects.all()] == [20_000]


def test_a_change_raises_the_configuration_generation_and_no_change_does_not(apply: Apply, cluster: Cluster) -> None:
    apply(texts.cluster_queue())
    cluster.refresh_from_db()
    generation = cluster.configuration_generation
    apply(texts.cluster_queue())
    cluster.refresh_from_db()
    assert cluster.configuration_generation == generation
    apply(texts.cluster_queue(cpu=11))
    cluster.refresh_from_db()
    assert cluster.configuration_generation > generation


def test_one_mistake_stores_nothing(apply: Apply) -> None:
    with pytest.raises(ManifestErrors) as caught:
        apply(joined(texts.namespace(), texts.job(), texts.kueue("Cohort", "all", "{parent: x}")))
    assert [(error.document, error.path) for error in caught.value.errors] == [(2, "spec.parent")]
    assert not Namespace.objects.exists()


def test_a_mistake_that_only_storing_finds_stores_nothing(apply: Apply) -> None:
    apply(joined(texts.namespace(), texts.local_queue()))
    with pytest.raises(ManifestErrors) as caught:
        apply(joined(texts.kueue("Cohort", "all"), texts.local_queue(queue="other")))
    (error,) = caught.value.errors
    assert (error.document, error.path, error.reason) == (1, "spec.clusterQueue", MistakeReason.IMMUTABLE)
    assert not Cohort.objects.exists()


def test_a_dry_run_tells_and_stores_nothing(apply: Apply) -> None:
    assert actions(apply(joined(texts.namespace(), texts.job()), dry_run=True)) == [
        "Namespace team created",
        "Job team/train created",
    ]
    assert not Namespace.objects.exists()
    assert not Workload.objects.exists()


def test_a_missing_namespace_is_created_with_one_warning(apply: Apply) -> None:
    result = apply(joined(texts.local_queue(), texts.job()))
    warnings = [applied.warnings for applied in result.objects]
    assert warnings == [("metadata.namespace: namespace team did not exist and was created",), ()]
    assert Namespace.objects.get().labels == {"kubernetes.io/metadata.name": "team"}


@pytest.mark.parametrize(
    ("first", "second", "path"),
    [
        (
            texts.kueue("ResourceFlavor", "f", "{nodeLabels: {a: b}, topologyName: t}"),
            texts.kueue("ResourceFlavor", "f", "{nodeLabels: {a: b}}"),
            "spec.topologyName",
        ),
        (
            texts.kueue("AdmissionCheck", "c", "{controllerName: a}"),
            texts.kueue("AdmissionCheck", "c", "{controllerName: b}"),
            "spec.controllerName",
        ),
        (
            "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: r}\nhandler: a\n",
            "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: r}\nhandler: b\n",
            "handler",
        ),
        (
            texts.kueue("Topology", "t", "{levels: [{nodeLabel: rack}]}"),
            texts.kueue("Topology", "t", "{levels: [{nodeLabel: block}]}"),
            "spec.levels",
        ),
        (texts.priority_class("p", 1), texts.priority_class("p", 2), "value"),
    ],
)
def test_what_is_immutable_is_refused(apply: Apply, first: str, second: str, path: str) -> None:
    apply(first)
    with pytest.raises(ManifestErrors) as caught:
        apply(second)
    assert [(error.path, error.reason) for error in caught.value.errors] == [(path, MistakeReason.IMMUTABLE)]


def test_levels_may_change_while_the_host_name_is_the_last(apply: Apply) -> None:
    host = "{nodeLabel: kubernetes.io/hostname}"
    apply(texts.kueue("Topology", "t", f"{{levels: [{{nodeLabel: rack}}, {host}]}}"))
    result = apply(texts.kueue("Topology", "t", f"{{levels: [{{nodeLabel: block}}, {host}]}}"))
    assert actions(result) == ["Topology t configured"]


def test_there_is_one_global_default(apply: Apply) -> None:
    apply(texts.priority_class("a", 1, default=True))
    with pytest.raises(ManifestErrors) as caught:
        apply(texts.priority_class("b", 2, default=True))
    assert caught.value.errors[0].path == "globalDefault"
    apply(joined(texts.priority_class("a", 1), texts.priority_class("b", 2, default=True)))


def test_a_flavor_that_leaves_out_a_resource_has_no_cell(apply: Apply) -> None:
    cells = "[{name: f, resources: [{name: cpu, nominalQuota: 1}]}]"
    apply(
        texts.kueue("ClusterQueue", "q", f"{{resourceGroups: [{{coveredResources: [cpu, memory], flavors: {cells}}}]}}")
    )
    assert [(cell.flavor, cell.resource) for cell in FlavorQuota.objects.all()] == [("f", "cpu")]


def test_a_class_that_changes_changes_the_workloads_that_name_it(apply: Apply) -> None:
    apply(joined(texts.workload_priority_class("high", 10), texts.job(labels="kueue.x-k8s.io/priority-class: high")))
    assert Workload.objects.get().priority == 10
    apply(texts.workload_priority_class("high", 20))
    assert Workload.objects.get().priority == 20
    assert WorkloadEvent.objects.filter(reason="PriorityChanged").exists()


# --- rights -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def submitter(db: None) -> User:
    user = User.objects.create(username="researcher")
    RoleBinding.objects.create(username=user.username, role=Role.SUBMITTER, namespace="team")
    return user


def test_a_submitter_applies_jobs_of_its_namespace(cluster: Cluster, submitter: User) -> None:
    result = apply_manifests(cluster, joined(texts.job(), texts.workload(), texts.deployment(1)), user=submitter)
    assert len(result.objects) == 3
    assert set(Workload.objects.values_list("submitted_by", flat=True)) == {"researcher"}


def test_a_submitter_applies_nothing_else(cluster: Cluster, submitter: User) -> None:
    other = texts.job().replace("namespace: team", "namespace: other")
    protected = texts.workload(name="b").replace("team}", "team, annotations: {kueueweb.io/never-preempt: 'true'}}")
    text = joined(texts.job(), other, texts.local_queue(), texts.cluster_queue(), protected)
    with pytest.raises(NotPermitted) as caught:
        apply_manifests(cluster, text, user=submitter)
    assert [(error.document, error.path, error.value) for error in caught.value.errors] == [
        (1, "kind", "Job"),
        (2, "kind", "LocalQueue"),
        (3, "kind", "ClusterQueue"),
        (4, "kind", "Workload"),
    ]
    assert not Namespace.objects.exists()


def test_a_submitter_sets_no_limits_of_its_namespace(cluster: Cluster, submitter: User) -> None:
    with pytest.raises(NotPermitted, match="1 of 1 objects"):
        apply_manifests(cluster, quota(1), user=submitter)
    assert not ResourceQuota.objects.exists()


def test_a_submitter_does_not_prune(cluster: Cluster, submitter: User) -> None:
    with pytest.raises(NotPermitted):
        apply_manifests(cluster, texts.job(), user=submitter, applied_set="a", prune=True)


def test_a_cluster_admin_applies_everything(cluster: Cluster, db: None) -> None:
    user = User.objects.create(username="admin")
    RoleBinding.objects.create(username=user.username, role=Role.ADMIN, namespace="")
    assert len(apply_manifests(cluster, joined(texts.namespace(), texts.cluster_queue()), user=user).objects) == 2


# --- prune ------------------------------------------------------------------------------------------------------------


def test_prune_removes_what_the_set_no_longer_holds(apply: Apply) -> None:
    whole = joined(
        texts.kueue("ResourceFlavor", "cpus"), texts.cluster_queue(), texts.kueue("Cohort", "all"), texts.job()
    )
    apply(whole, applied_set="a")
    apply(texts.kueue("Cohort", "other"), applied_set="b")
    result = apply(texts.kueue("ResourceFlavor", "cpus"), applied_set="a", prune=True)
    assert actions(result) == [
        "ResourceFlavor cpus unchanged",
        "Job team/train pruned",
        "ClusterQueue main pruned",
        "Cohort all pruned",
    ]
    assert [cohort.name for cohort in Cohort.objects.all()] == ["other"]
    assert not ClusterQueue.objects.exists()
    assert not Workload.objects.exists()


def test_a_namespace_waits_for_what_limits_it(apply: Apply, cluster: Cluster) -> None:
    apply(texts.namespace() + "---\n" + quota(10), applied_set="a")
    assert actions(apply(texts.namespace(), applied_set="a", prune=True)) == [
        "Namespace team unchanged",
        "ResourceQuota team/gpus pruned",
    ]
    apply(quota(10))
    assert "ResourceQuotas gpus" in delete_object(cluster, "Namespace", "team", actor="x")
    delete_object(cluster, "ResourceQuota", "gpus", "team", actor="x")
    assert not Namespace.objects.filter(name="team").exists()


def test_prune_needs_a_set(apply: Apply) -> None:
    with pytest.raises(InvalidRequest):
        apply(texts.namespace(), prune=True)
    with pytest.raises(InvalidRequest, match="at most 253 characters"):
        apply(texts.namespace(), applied_set="x" * 254)


@pytest.mark.parametrize("manifest", [texts.workload(), texts.job()], ids=["workload", "job"])
def test_prune_keeps_what_holds_quota_unless_forced(apply: Apply, manifest: str) -> None:
    apply(joined(texts.namespace(), manifest), applied_set="a")
    hold_quota()
    kept = apply(texts.namespace(), applied_set="a", prune=True)
    assert actions(kept)[1].endswith("unchanged")
    assert "holds quota" in kept.objects[1].warnings[0]
    forced = apply(texts.namespace(), applied_set="a", prune=True, force=True)
    assert actions(forced)[1].endswith("pruned")
    (workload,) = Workload.objects.all()
    assert workload.deletion_requested_at is not None
    assert workload.active is False


def test_what_is_pruned_waits_while_it_is_in_use(apply: Apply) -> None:
    apply(texts.kueue("ResourceFlavor", "cpus"), applied_set="a")
    apply(texts.cluster_queue())
    result = apply(texts.kueue("Cohort", "all"), applied_set="a", prune=True)
    assert result.objects[1].warnings == ("is used: it is a flavor of main",)
    assert ResourceFlavor.objects.get().deletion_requested_at is not None
    with pytest.raises(ManifestErrors) as caught:
        apply(texts.kueue("ResourceFlavor", "cpus"))
    assert caught.value.errors[0].reason == MistakeReason.IN_USE


def test_what_others_applied_since_is_not_pruned(apply: Apply) -> None:
    apply(joined(texts.namespace(), texts.local_queue()), applied_set="a")
    apply(texts.local_queue(), applied_set="b")
    apply(texts.namespace(), applied_set="a", prune=True)
    assert LocalQueue.objects.get().applied_set == "b"


def test_settings_of_the_cluster_are_pruned(apply: Apply, cluster: Cluster) -> None:
    configuration = (
        "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\nresources: {excludeResourcePrefixes: [x]}\n"
    )
    config_map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hami}\ndata: {config.yaml: 'deviceSplitCount: 4'}\n"
    apply(joined(configuration, config_map), applied_set="a")
    cluster.refresh_from_db()
    assert cluster.device_plugin_configuration["settings"] == {"split_count": 4}
    assert actions(apply(texts.namespace(), applied_set="a", prune=True))[1:] == [
        "ConfigMap default/hami pruned",
        "Configuration  pruned",
    ]
    cluster.refresh_from_db()
    assert (cluster.configuration, cluster.device_plugin_configuration) == ({}, {})


def test_a_policy_of_concurrent_admission_is_kept_with_its_mode(apply: Apply) -> None:
    text = joined(texts.namespace(), texts.cluster_queue(more="concurrentAdmissionPolicy: {}"))
    assert apply(text).objects
    assert ClusterQueue.objects.get().concurrent_admission_policy == {"migration": {"mode": "TryPreferredFlavors"}}
