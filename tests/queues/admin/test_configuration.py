"""Configuration edited on admin pages: by Kueue's rules, at the field, and the scheduler hears of it."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from accounts.models import Cluster, Namespace, Role, RoleBinding
from queues.admin.quota_table import words_of
from queues.models import (
    AdmissionCheck,
    ClusterQueue,
    Cohort,
    FlavorQuota,
    LimitRange,
    LocalQueue,
    MultiKueueCluster,
    MultiKueueConfig,
    PriorityClass,
    ProvisioningRequestConfig,
    Reservation,
    ResourceFlavor,
    ResourceQuota,
    RuntimeClass,
    Topology,
    Workload,
    WorkloadPriorityClass,
)
from scheduler.models import Change
from tests.factories import make_cluster, make_cluster_queue, make_resource_flavor

ADD = "/admin/queues/clusterqueue/add/"


@pytest.fixture
def cluster(db: None) -> Cluster:
    return make_cluster()


@pytest.fixture
def site(cluster: Cluster) -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    return client


def fields(client: Client, url: str) -> dict[str, str]:
    """What the form on the page would send if nobody touched it."""
    form: Any = client.get(url).context["adminform"].form
    sent: dict[str, str] = {}
    for bound in form:
        value = bound.value()
        if bound.name == "resource_groups":
            for index, row in enumerate(value or ()):
                sent |= {f"resource_groups-{index}-{column}": text for column, text in row.items()}
            sent["resource_groups-rows"] = str(len(value or ()))
        elif isinstance(value, bool):
            sent |= {bound.name: "on"} if value else {}
        else:
            sent[bound.name] = "" if value is None else str(value)
    return sent


def errors(response: Any) -> dict[str, list[str]]:
    form: Any = response.context["adminform"].form
    return {name: list(found) for name, found in form.errors.items()}


def quota(index: int, **cell: str) -> dict[str, str]:
    return {f"resource_groups-{index}-{column}": text for column, text in cell.items()}


def test_add_and_edit_a_cluster_queue(site: Client, cluster: Cluster) -> None:
    sent = {
        **fields(site, ADD),
        "cluster": str(cluster.pk),
        "name": "research",
        "cohort_name": "company",
        "namespace_selector": "{}",
        "minimum_run_seconds": "60",
        "preempt_for_devices": "on",
        "resource_groups-rows": "4",
        **quota(0, group="1", flavor="v100", resource="cpu", nominal_quota="4500m", borrowing_limit="2"),
        **quota(1, group="1", flavor="v100", resource="memory", nominal_quota="10Gi", lending_limit="1Gi"),
        **quota(2, group="2", flavor="a100", resource="nvidia.com/gpu", nominal_quota="8"),
    }
    assert site.post(ADD, sent).status_code == 302
    row = ClusterQueue.objects.get()
    assert (row.cohort_name, row.namespace_selector, row.preempt_for_devices) == ("company", {}, True)
    assert (row.minimum_run_seconds, row.cool_down_seconds) == (60, None)
    assert [group.covered_resources for group in row.resource_groups.all()] == [["cpu", "memory"], ["nvidia.com/gpu"]]
    columns = ("resource", "nominal_quota", "borrowing_limit", "lending_limit")
    assert list(FlavorQuota.objects.order_by("id").values_list(*columns)) == [
        ("cpu", 4500, 2000, None),
        ("memory", 10 * 2**30, None, 2**30),
        ("nvidia.com/gpu", 8, None, None),
    ]

    Change.objects.all().delete()
    url = f"/admin/queues/clusterqueue/{row.pk}/change/"
    untouched = fields(site, url)
    assert site.post(url, untouched).status_code == 302
    assert ClusterQueue.objects.get().generation == row.generation
    assert (
        site.post(url, {**untouched, "stop_policy": "Hold", "resource_groups-0-nominal_quota": "6"}).status_code == 302
    )
    row.refresh_from_db()
    assert row.stop_policy == "Hold"
    assert FlavorQuota.objects.get(resource="cpu").nominal_quota == 6000
    assert Change.objects.filter(kind="clusterqueue", key="research").exists()


def test_a_weight_is_shown_as_it_was_written(site: Client, cluster: Cluster) -> None:
    make_cluster_queue(cluster, fair_sharing_weight="2.5")
    assert b">2.5</td>" in site.get("/admin/queues/clusterqueue/").content


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"cohort_name": "No Name"}, "cohort_name"),
        ({"fair_sharing_weight": "-1"}, "fair_sharing_weight"),
        ({"fair_sharing_weight": "1e30"}, "fair_sharing_weight"),
        ({"admission_checks": '[{"name": "x", "on_flavors": ["gone"]}]'}, "admission_checks"),
        ({"namespace_selector": "{"}, "namespace_selector"),
        ({"resource_groups-0-nominal_quota": "lots"}, "resource_groups"),
        ({"resource_groups-0-lending_limit": "100"}, "resource_groups"),
        ({"resource_groups-0-flavor": ""}, "resource_groups"),
        ({"resource_groups-0-group": "one"}, "resource_groups"),
        ({"borrow_within_cohort_policy": "LowerPriority"}, "reclaim_within_cohort"),
        ({"labels": '{"-": "x"}'}, "labels"),
    ],
)
def test_a_mistake_stands_at_its_field(site: Client, cluster: Cluster, change: dict[str, str], field: str) -> None:
    row = make_cluster_queue(cluster, cohort_name="company")
    url = f"/admin/queues/clusterqueue/{row.pk}/change/"
    response = site.post(url, {**fields(site, url), **change})
    assert response.status_code == 200
    assert field in errors(response), errors(response)
    assert FlavorQuota.objects.get().nominal_quota == 10_000


def test_a_mistake_in_a_quota_names_its_row(site: Client, cluster: Cluster) -> None:
    row = make_cluster_queue(cluster, quotas={"v100": {"cpu": 1000, "memory": 1}})
    url = f"/admin/queues/clusterqueue/{row.pk}/change/"
    response = site.post(url, {**fields(site, url), "resource_groups-1-nominal_quota": "lots"})
    assert errors(response)["resource_groups"][0].startswith("v100, memory, nominal quota: ")


def test_delete_waits_for_what_holds_it(site: Client, cluster: Cluster) -> None:
    flavor = make_resource_flavor(cluster, "default-flavor")
    queue = make_cluster_queue(cluster)
    response = site.post(f"/admin/queues/resourceflavor/{flavor.pk}/delete/", {"post": "yes"}, follow=True)
    assert "it is a flavor of main" in response.content.decode()
    assert ResourceFlavor.objects.get().deletion_requested_at is not None
    site.post(f"/admin/queues/clusterqueue/{queue.pk}/delete/", {"post": "yes"})
    assert not ClusterQueue.objects.exists()
    assert not ResourceFlavor.objects.exists()


def test_the_other_forms(site: Client, cluster: Cluster) -> None:
    pages: dict[str, dict[str, str]] = {
        "cohort": {"parent_name": "root", "name": "company"},
        "localqueue": {"namespace": "team", "name": "main", "cluster_queue_name": "research"},
        "resourceflavor": {"name": "v100", "node_labels": '{"gpu": "v100"}'},
    }
    for page, given in pages.items():
        url = f"/admin/queues/{page}/add/"
        response = site.post(url, {**fields(site, url), "cluster": str(cluster.pk), **given})
        assert response.status_code == 302, errors(response)
    assert Cohort.objects.get().parent_name == "root"
    queue = LocalQueue.objects.get()
    assert ResourceFlavor.objects.get().node_labels == {"gpu": "v100"}
    url = f"/admin/queues/localqueue/{queue.pk}/change/"
    response = site.post(url, {**fields(site, url), "cluster_queue_name": "production"})
    assert "field is immutable" in errors(response)["cluster_queue_name"][0]


@pytest.mark.parametrize(
    ("model", "given", "wrong"),
    [
        (Namespace, {"labels": '{"team": "a"}'}, {"labels": '{"-": "a"}'}),
        (WorkloadPriorityClass, {"value": "10"}, {"value": "99999999999"}),
        (PriorityClass, {"value": "10"}, {"value": "11"}),
        (Topology, {"levels": '["rack"]'}, {"levels": '["block"]'}),
        (AdmissionCheck, {"controller_name": "example.com/budget"}, {"parameters": '{"kind": "x"}'}),
        (ProvisioningRequestConfig, {"provisioning_class_name": "atomic"}, {"pod_set_merge_policy": "Some"}),
        (MultiKueueConfig, {"clusters": '["east"]'}, {"clusters": "[]"}),
        (MultiKueueCluster, {"cluster_profile": "east"}, {"kube_config": '{"locationType": "Git"}'}),
        (RuntimeClass, {"handler": "kata"}, {"handler": "No Name"}),
        (
            Reservation,
            {
                "starts_at": "2027-01-05T08:00:00Z",
                "ends_at": "2027-01-05T12:00:00Z",
                "node_names": '["n1"]',
            },
            {"ends_at": "2027-01-05T08:00:00Z"},
        ),
        (ResourceQuota, {"namespace": "team", "hard": '{"limits.nvidia.com/gpumem": 10000}'}, {"hard": '{"cpu": "x"}'}),
        (LimitRange, {"namespace": "team", "limits": '[{"type": "Pod", "max": {"cpu": 4}}]'}, {"limits": "[]"}),
    ],
)
def test_small_kinds(site: Client, cluster: Cluster, model: Any, given: dict[str, str], wrong: dict[str, str]) -> None:
    url = f"/admin/{model._meta.app_label}/{model._meta.model_name}/add/"
    response = site.post(url, {**fields(site, url), "cluster": str(cluster.pk), "name": "mine", **given})
    assert response.status_code == 302, errors(response)
    row = model.objects.get(name="mine")
    url = f"/admin/{model._meta.app_label}/{model._meta.model_name}/{row.pk}/change/"
    assert site.post(url, fields(site, url)).status_code == 302
    ((field, _),) = wrong.items()
    assert field in errors(site.post(url, {**fields(site, url), **wrong}))


def test_a_class_changes_the_workloads_that_name_it(site: Client, cluster: Cluster) -> None:
    row = WorkloadPriorityClass.objects.create(cluster=cluster, name="high", value=1, created_at=cluster.created_at)
    Workload.objects.create(
        cluster=cluster,
        namespace="team",
        name="w",
        priority=1,
        priority_class_kind="WorkloadPriorityClass",
        priority_class_name="high",
        created_at=cluster.created_at,
    )
    url = f"/admin/queues/workloadpriorityclass/{row.pk}/change/"
    assert site.post(url, {**fields(site, url), "value": "7"}).status_code == 302
    assert Workload.objects.get().priority == 7


def test_a_form_that_was_opened_before_an_edit_of_others_is_refused(site: Client, cluster: Cluster) -> None:
    """Of two who edit one quota, the second took back the edit of the first in silence."""
    queue = make_cluster_queue(cluster, "research", {"default-flavor": {"cpu": 4000}})
    url = f"/admin/queues/clusterqueue/{queue.pk}/change/"
    opened = fields(site, url)
    other = Client()
    other.force_login(User.objects.create_superuser("ruth"))
    assert other.post(url, {**fields(other, url), "stop_policy": "Hold"}).status_code == 302
    refused = site.post(url, {**opened, "resource_groups-0-nominal_quota": "6"})
    [message] = errors(refused)["__all__"]
    assert "ruth changed research after this page was opened; nothing was stored" in message
    assert 'Stop policy is "Hold" now and "None" on this page' in message
    queue.refresh_from_db()
    assert (queue.stop_policy, FlavorQuota.objects.get().nominal_quota) == ("Hold", 4000)
    assert site.post(url, {**fields(site, url), "resource_groups-0-nominal_quota": "6"}).status_code == 302
    queue.refresh_from_db()
    assert (queue.stop_policy, FlavorQuota.objects.get().nominal_quota) == ("Hold", 6000)


def test_quotas_have_choices_and_units(site: Client, cluster: Cluster) -> None:
    make_resource_flavor(cluster, name="a100")
    row = make_cluster_queue(cluster)
    page = site.get(f"/admin/queues/clusterqueue/{row.pk}/change/").content.decode()
    first = page[page.index('<select name="resource_groups-0-flavor"') :]
    first = first[: first.index("</select>")]
    held = FlavorQuota.objects.order_by("id").values_list("flavor", flat=True)[0]
    assert {'<option value="a100">a100</option>', f'<option value="{held}" selected>{held}</option>'} <= set(
        first.replace("><", ">\n<").splitlines()
    )
    assert '<option value="nvidia.com/total-gpumem">' in page  # other resources may be typed
    assert words_of("memory", "524288Mi") == "512 GiB"
    assert words_of("nvidia.com/total-gpumem", "8192") == "8192 MiB"
    assert words_of("nvidia.com/gpu", "8") == ""
    assert words_of("cpu", "lots") == ""


@pytest.mark.django_db(transaction=True)  # the audit has an edit of quotas when it is committed
def test_the_history_has_old_and_new_values(transactional_db: None) -> None:
    cluster, site = make_cluster(), Client()
    site.force_login(User.objects.create_superuser("root"))
    sent = {
        **fields(site, ADD),
        "cluster": str(cluster.pk),
        "name": "research",
        "resource_groups-rows": "1",
        **quota(0, group="1", flavor="v100", resource="memory", nominal_quota="10Gi"),
    }
    assert site.post(ADD, sent).status_code == 302
    row = ClusterQueue.objects.get()
    url = f"/admin/queues/clusterqueue/{row.pk}/change/"
    sent = {**fields(site, url), "resource_groups-0-nominal_quota": "12Gi", "stop_policy": "Hold"}
    assert site.post(url, sent).status_code == 302
    edits = site.get(url.replace("change/", "history/")).context["edits"]
    assert [edit.verb for edit in edits] == ["update", "create"]
    changed = {change.field: (change.before, change.after) for change in edits[0].changes}
    assert changed["v100 memory, nominal quota"] == ("10 GiB", "12 GiB")
    assert changed["stop policy"] == ("None", "Hold")


def test_an_object_as_yaml_and_back(site: Client, cluster: Cluster) -> None:
    row = make_cluster_queue(cluster, name="research", stop_policy="Hold")
    change = f"/admin/queues/clusterqueue/{row.pk}/change/"
    url = f"/admin/manifests/clusterqueue/{row.pk}/"
    assert url in site.get(change).content.decode()
    text = site.get(url).context["text"]
    assert "kind: ClusterQueue" in text
    held = text.replace("stopPolicy: Hold", "stopPolicy: HoldAndDrain")
    assert held != text
    site.post(url, {"text": held, "do": "check"})
    assert ClusterQueue.objects.get().stop_policy == "Hold"
    assert site.post(url, {"text": held, "do": "apply"}).context["objects"] == ["ClusterQueue research: configured"]
    assert ClusterQueue.objects.get().stop_policy == "HoldAndDrain"
    wrong = site.post(url, {"text": text.replace("stopPolicy: Hold", "stopPolicy: Sometimes"), "do": "apply"})
    late = site.post(url, {"text": text, "do": "apply"})
    assert [error.path for error in late.context["errors"]] == ["metadata.resourceVersion"]
    assert [error.path for error in wrong.context["errors"]] == ["spec.stopPolicy"]
    assert ClusterQueue.objects.get().stop_policy == "HoldAndDrain"
    sent = {"cluster": cluster.name, "text": "kind: Cohort\napiVersion: kueue.x-k8s.io/v1beta2\nmetadata: {name: all}"}
    site.post("/admin/manifests/", {**sent, "do": "apply"})
    assert Cohort.objects.get().name == "all"
    binding = RoleBinding.objects.create(name="everywhere", cluster=None, username="bob", role=Role.VIEWER)
    assert site.get(f"/admin/manifests/rolebinding/{binding.pk}/").status_code == 404
    for nowhere in ("clusterqueue/none", "clusterqueue/99999999999999999999", "user/1"):
        assert site.get(f"/admin/manifests/{nowhere}/").status_code == 404
    assert site.post("/admin/manifests/", {"cluster": "no\0where", "text": ""}).status_code in {400, 404}
    client = Client()
    client.force_login(User.objects.create_user("nobody"))
    assert client.get(url).status_code == 302
    assert client.get("/admin/manifests/").status_code == 302


def test_the_page_of_an_object_can_apply_again_and_again(site: Client, cluster: Cluster) -> None:
    row = make_cluster_queue(cluster, name="research", cohort_name="none")
    url = f"/admin/manifests/clusterqueue/{row.pk}/"
    text = site.get(url).context["text"]
    for before, after in (("none", "east"), ("east", "west")):
        page = site.post(url, {"text": text.replace(f"cohortName: {before}", f"cohortName: {after}"), "do": "apply"})
        assert page.context["errors"] == []
        text = page.context["text"]
        assert f"cohortName: {after}" in text
    assert ClusterQueue.objects.get().cohort_name == "west"


def test_the_admin_names_only_clusters_of_the_users_own(cluster: Cluster) -> None:
    make_cluster("secret")
    User.objects.create_user("ada", is_staff=True)
    RoleBinding.objects.create(name="ada", cluster=cluster, username="ada", role=Role.ADMIN)
    client = Client()
    client.force_login(User.objects.get(username="ada"))
    assert client.get("/admin/manifests/").context["clusters"] == ["default"]
    assert client.post("/admin/manifests/", {"cluster": "secret", "text": ""}).status_code == 404
