"""The tree of queues, and quotas that the scheduler follows."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.e2e.conftest import Api, text_in

SMALL = """
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: small}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu, memory, nvidia.com/gpu, nvidia.com/total-gpumem, nvidia.com/total-gpucores]
    flavors:
    - name: gpu-v100-32gb
      resources:
      - {name: cpu, nominalQuota: 1}
      - {name: memory, nominalQuota: 8Gi}
      - {name: nvidia.com/gpu, nominalQuota: 4}
      - {name: nvidia.com/total-gpumem, nominalQuota: 32768}
      - {name: nvidia.com/total-gpucores, nominalQuota: 100}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: small-queue, namespace: ai-research}
spec: {clusterQueue: small}
"""


def test_the_tree_shows_the_cohort_with_its_queues(page: Page, log_in: Callable[[str], None]) -> None:
    log_in("admin")
    page.goto("/queues")
    main = page.get_by_role("main")
    expect(main).to_contain_text("cohort of 2 queues")
    for name in ("research", "production"):
        expect(main.get_by_role("link", name=name, exact=True)).to_be_visible()


def test_a_raised_quota_lets_a_waiting_job_in(page: Page, log_in: Callable[[str], None], admin: Api) -> None:
    admin.apply(SMALL)
    name = admin.submit("quota-too-small", queue="small-queue", cpu="2")
    log_in("admin")
    page.goto(f"/workloads/ai-research/{name}")
    main = page.get_by_role("main")
    expect(main).to_contain_text("ExceedsMaxQuota")

    page.goto("/queues/small")
    page.get_by_role("button", name="Edit", exact=True).click()
    page.get_by_label("Nominal quota of cpu, flavor gpu-v100-32gb").fill("4")
    expect(page.get_by_role("status").filter(has_text="1 workload would start")).to_contain_text(name)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("ClusterQueue small: the scheduler uses it now.")).to_be_visible()

    page.goto(f"/workloads/ai-research/{name}")
    expect(main).to_contain_text("PodsReady")


def test_a_quota_that_is_none_is_refused_at_its_field(page: Page, log_in: Callable[[str], None]) -> None:
    log_in("admin")
    page.goto("/queues/research")
    page.get_by_role("button", name="Edit", exact=True).click()
    field = page.get_by_label("Nominal quota of cpu, flavor gpu-v100-32gb")
    field.fill("many")
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_text("The change would be refused")).to_be_visible()
    expect(page.get_by_role("button", name="Save")).to_be_disabled()


def test_the_queue_page_begins_with_the_waiting_workloads(
    page: Page, log_in: Callable[[str], None], admin: Api
) -> None:
    admin.apply(SMALL.replace("small", "shown"))
    name = admin.submit("shown-first", queue="shown-queue", cpu="2")
    log_in("admin")
    page.goto("/queues/shown")
    main = page.get_by_role("main")
    waiting = main.get_by_role("table", name="Workloads pending in shown")
    expect(waiting.get_by_role("row", name=name)).to_contain_text("above max. quota")
    expect(main.get_by_role("table").first).to_have_attribute("aria-label", "Workloads pending in shown")
    expect(main.get_by_role("region", name="History").get_by_role("button", name="All charts")).to_be_visible()

    page.get_by_role("button", name="Edit the quota of cpu, flavor gpu-v100-32gb").click()
    field = page.get_by_label("Nominal quota of cpu, flavor gpu-v100-32gb")
    expect(field).to_be_focused()
    expect(page.get_by_role("dialog")).to_contain_text("0 used now")
    page.keyboard.press("Escape")

    page.set_viewport_size({"width": 390, "height": 844})
    expect(waiting.get_by_role("row", name=name)).to_contain_text("above max. quota")
    expect(waiting.get_by_role("columnheader", name="Why it waits")).to_have_count(0)


MADE = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: from-the-page}
spec:
  namespaceSelector: {}
  stopPolicy: Hold
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: gpu-v100-32gb, resources: [{name: cpu, nominalQuota: 3}]}]
"""


def test_a_queue_is_made_edited_by_two_and_deleted(page: Page, log_in: Callable[[str], None], admin: Api) -> None:
    log_in("admin")
    page.goto("/queues")
    page.get_by_role("button", name="New").click()
    page.get_by_role("menuitem", name="ClusterQueue").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("textbox", name="Name", exact=True).fill("from-the-page")
    dialog.get_by_label("Flavor of a new group").fill("gpu-v100-32gb")
    dialog.get_by_role("button", name="Add quota").click()
    manifest = dialog.get_by_role("textbox", name="Manifest")
    manifest.fill(text_in(manifest).replace('nominalQuota: "0"', 'nominalQuota: "3"'))  # the text, and
    expect(dialog.get_by_label("Nominal quota of cpu, flavor gpu-v100-32gb")).to_have_value("3")  # the form follows
    dialog.get_by_role("button", name="Save").click()
    expect(page.get_by_text("ClusterQueue from-the-page: the scheduler uses it now.")).to_be_visible()

    page.goto("/queues/from-the-page")
    page.get_by_role("button", name="Edit", exact=True).click()
    dialog.get_by_label("Nominal quota of cpu, flavor gpu-v100-32gb").fill("5")
    expect(dialog.get_by_role("button", name="Save")).to_be_enabled()
    admin.apply(MADE)
    dialog.get_by_role("button", name="Save").click()
    alert = dialog.get_by_role("alert").filter(has_text="The object has changed in the meantime")
    expect(alert).to_contain_text("modified by admin")
    expect(alert.get_by_role("row", name="Stop policy none Hold")).to_be_visible()
    dialog.get_by_role("button", name="Save").click()
    expect(page.get_by_text("ClusterQueue from-the-page: the scheduler uses it now.")).to_be_visible()
    kept = admin.get("cluster-queues/from-the-page/")
    assert kept["stop_policy"] == "Hold"
    assert kept["resource_groups"][0]["flavors"][0]["resources"][0]["nominal_quota"] == "5"

    page.get_by_role("button", name="Delete").click()
    dialog.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", name="Queues", level=1)).to_be_visible()
    assert "from-the-page" not in [row["name"] for row in admin.get("cluster-queues/")["results"]]


def test_users_who_may_not_edit_see_no_edit_button(page: Page, log_in: Callable[[str], None]) -> None:
    log_in("researcher")
    page.goto("/queues/research")
    expect(page.get_by_role("heading", name="research", level=1)).to_be_visible()
    for name in ("Edit", "Delete", "New LocalQueue"):
        expect(page.get_by_role("button", name=name)).to_have_count(0)
