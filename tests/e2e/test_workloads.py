"""The table of workloads, and one of them."""

import re
from collections.abc import Callable

from playwright.sync_api import Locator, Page, expect

from tests.e2e.conftest import Api, text_in


def rows(page: Page) -> Locator:
    """The rows of the table, without its head."""
    return page.get_by_role("table", name="Workloads").locator("tbody").get_by_role("row")


def test_it_filters_by_status_and_name_and_keeps_that_in_the_address(
    page: Page, log_in: Callable[[str], None], admin: Api
) -> None:
    admitted = admin.submit("filter-small")
    waiting = admin.submit("filter-huge", memory_mib=90_000, cores_percent=100)  # more than any device has
    log_in("admin")
    page.goto("/workloads")
    page.get_by_role("searchbox", name="Search by name").fill("filter-")
    expect(rows(page)).to_have_count(2)
    page.get_by_role("radiogroup", name="Status").get_by_text("Pending").click()
    expect(rows(page).filter(has_text=waiting)).to_have_count(1)
    expect(rows(page)).to_have_count(1)
    expect(page).to_have_url(re.compile("state=Pending"))
    page.reload()
    expect(rows(page)).to_have_count(1)
    page.get_by_role("radiogroup", name="Status").get_by_text("Running").click()
    expect(rows(page).filter(has_text=admitted)).to_have_count(1)
    expect(rows(page)).to_have_count(1)

    page.get_by_role("radiogroup", name="Status").get_by_text("All").click()
    page.get_by_role("button", name="Time: Any time").click()
    page.get_by_role("button", name="Last hour").click()
    expect(page).to_have_url(re.compile("last=1h"))
    expect(rows(page)).to_have_count(2)
    rows(page).first.get_by_role("checkbox").click()
    page.get_by_role("button", name="Select all 2 matches").click()
    page.get_by_role("toolbar", name="2 workloads selected").get_by_role("button", name="Hold").click()
    question = page.get_by_role("dialog", name="Hold 2 workloads?")
    effects = question.get_by_role("status")
    expect(effects).to_contain_text(f"1 workload stops: ai-research/{admitted}")
    expect(effects).to_contain_text(f"1 waiting workload leaves its place in the queue: ai-research/{waiting}")
    question.get_by_role("button", name="Hold").click()
    told = page.get_by_role("alert").filter(has_text="2 workloads")
    told.get_by_role("button", name="Undo").click()
    expect(rows(page).filter(has_text=waiting)).to_contain_text("Pending")
    page.get_by_role("button", name="Remove Submitted: Last hour").click()
    expect(page).not_to_have_url(re.compile("last="))


def test_a_workload_that_no_node_could_take_says_that_it_can_never_start(
    page: Page, log_in: Callable[[str], None], admin: Api
) -> None:
    name = admin.submit("explain-huge", memory_mib=90_000, cores_percent=100)
    log_in("admin")
    page.goto(f"/workloads/ai-research/{name}")
    why = page.get_by_role("main").get_by_role("region", name="Why it waits")
    expect(why).to_contain_text("It can never start: it requests 1 GPU, 87.9 GiB, 100 % on one node, and no node of")
    expect(why).to_contain_text("Request less per pod")
    expect(why.get_by_role("button", name="Could it start if other pods moved?")).to_have_count(0)


def test_a_workload_that_cannot_be_placed_says_what_is_missing(
    page: Page, log_in: Callable[[str], None], admin: Api
) -> None:
    # One fits beside no other on an A100, of which there are sixteen, and on no smaller device.
    *held, name = [admin.submit(f"explain-wide-{place}", memory_mib=45_000, cores_percent=60) for place in range(17)]
    log_in("admin")
    page.goto(f"/workloads/ai-research/{name}")
    main = page.get_by_role("main")
    expect(main.get_by_role("heading", level=1)).to_contain_text(name)
    expect(main).to_contain_text("WaitingForDevices")
    why = main.get_by_role("region", name="Why it waits")
    expect(why).to_contain_text("It waits for 1 GPU, 43.9 GiB, 60 % on one node: none of the")
    expect(why).to_contain_text(re.compile("Expected to start|Start unknown|Start not estimated yet"))
    expect(why.get_by_role("link", name="How accurate are estimates?")).to_be_visible()
    expect(why.get_by_role("heading", name="Nodes where it might run")).to_be_visible()
    expect(why).to_contain_text("of 8 free")
    expect(why).to_contain_text("too little device memory free")
    expect(why).to_contain_text("CardInsufficientMemory")
    for each in (*held, name):
        admin.post(f"workloads/ai-research/{each}/cancel/", {})


def test_a_running_workload_shows_its_device_and_ends_on_request(
    page: Page, log_in: Callable[[str], None], admin: Api
) -> None:
    name = admin.submit("detail-running")
    log_in("admin")
    page.goto(f"/workloads/ai-research/{name}")
    main = page.get_by_role("main")
    expect(main).to_contain_text("It is running and holds 1 device on 1 node.")
    expect(main).to_contain_text(re.compile("GPU-[0-9a-f]{8}"))
    page.get_by_role("tab", name="Conditions").click()
    expect(main).to_contain_text("PodsReady")
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("dialog").get_by_role("button", name=re.compile("Cancel")).last.click()
    expect(main).to_contain_text("Ended")
    expect(main).to_contain_text("Where it last ran")
    expect(main).to_contain_text(re.compile("GPU-[0-9a-f]{8}"))


def test_a_tenant_sees_the_own_namespace_only(page: Page, log_in: Callable[[str], None], admin: Api) -> None:
    name = admin.submit("tenant-research")
    log_in("operator")
    page.goto("/workloads?search=tenant-research")
    expect(page.get_by_role("main")).not_to_contain_text(name)
    page.goto(f"/workloads/ai-research/{name}")
    expect(page.get_by_role("main")).not_to_contain_text("Conditions")


def test_the_list_is_sorted_grouped_and_narrowed_and_the_address_keeps_it(
    page: Page, log_in: Callable[[str], None], admin: Api
) -> None:
    name = admin.submit("in-a-group")
    log_in("admin")
    page.goto("/workloads")
    table = page.get_by_role("table", name="Workloads")
    table.get_by_role("button", name="Priority").click()
    expect(page).to_have_url(re.compile("sort=-priority"))
    expect(table.get_by_role("columnheader", name="Priority")).to_have_attribute("aria-sort", "descending")

    page.get_by_role("button", name="Columns").click()
    page.get_by_role("checkbox", name="Priority", exact=True).click()
    page.get_by_role("textbox", name="Key of the column").fill("kueue.x-k8s.io/queue-name")
    page.get_by_role("button", name="Add", exact=True).click()
    page.keyboard.press("Escape")
    expect(table.get_by_role("columnheader", name="kueue.x-k8s.io/queue-name")).to_be_visible()
    expect(table.get_by_role("columnheader", name="Priority")).to_have_count(0)
    expect(page).to_have_url(re.compile("hide=priority"))

    head = table.get_by_role("columnheader", name="Status")
    edge, width = head.get_by_role("separator"), head.evaluate("head => head.offsetWidth")
    box = edge.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 4, box["y"] + 8)
    page.mouse.down()
    page.mouse.move(box["x"] + 44, box["y"] + 8, steps=4)
    page.mouse.up()
    expect(page).to_have_url(re.compile(f"status(~|%7E){width + 40}"))
    edge.press("ArrowLeft")
    expect(page).to_have_url(re.compile(f"status(~|%7E){width + 32}"))
    page.reload()
    expect(head).to_have_js_property("offsetWidth", width + 32)

    page.get_by_role("button", name="Views").click()
    page.get_by_label("Name of the view").fill("narrow")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("button", name="narrow", exact=True)).to_be_visible()
    page.evaluate("localStorage.clear()")
    page.goto("/workloads")
    page.get_by_role("button", name="Views").click()
    page.get_by_role("button", name="narrow", exact=True).click()
    expect(page).to_have_url(re.compile("hide=priority"))
    expect(head).to_have_js_property("offsetWidth", width + 32)

    page.get_by_label("Group by").select_option("namespace")
    groups = page.get_by_role("table", name="Workloads by Namespace")
    groups.get_by_role("row", name="ai-research").click()
    expect(page).to_have_url(re.compile("namespace=ai-research"))
    expect(table.get_by_role("link", name=name)).to_be_visible()
    page.get_by_role("button", name="Label", exact=True).click()
    page.get_by_role("textbox", name="Key", exact=True).fill("team")
    page.get_by_role("combobox", name="Comparison").select_option("starts with")
    page.get_by_role("textbox", name="Value").fill("no-such")
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_role("main")).to_contain_text("No workload matches these filters")


def test_a_form_and_a_manifest_change_each_other_and_become_a_link(page: Page, log_in: Callable[[str], None]) -> None:
    log_in("admin")
    page.goto("/workloads")
    page.get_by_role("button", name="Submit").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("combobox", name="Start from").click()
    page.get_by_role("option", name="CPU only").click()
    manifest = dialog.get_by_role("textbox", name="Manifest")
    dialog.get_by_label("Pods", exact=True).fill("2")
    dialog.get_by_label("CPU cores").fill("250m")
    dialog.get_by_label("Command").fill('sh -c "sleep 5"')
    expect(manifest).to_contain_text(re.compile(r"parallelism: 2\s+completions: 2"))
    expect(manifest).to_contain_text('command: ["sh","-c","sleep 5"]')
    name = dialog.get_by_label("Name", exact=True)
    expect(name).to_have_attribute("placeholder", "preprocess- and a random ending")
    name.fill("by-hand")
    expect(manifest).to_contain_text(re.compile(r"metadata:\s+name: by-hand\s+namespace: "))
    name.fill("")
    manifest.fill(text_in(manifest).replace("250m", "100m").replace("preprocess-", "by-form-"))
    expect(dialog.get_by_label("CPU cores")).to_have_value("100m")
    dialog.get_by_role("button", name="Check only").click()
    expect(dialog.get_by_role("alert")).to_contain_text(re.compile("by-form-.* would (start now|wait)"))
    dialog.get_by_role("button", name="Submit", exact=True).click()
    page.get_by_role("alert").get_by_role("link", name=re.compile("by-form-")).click()
    rows = page.get_by_role("table").get_by_role("link", name=re.compile("by-form-"))
    expect(rows).to_have_count(1)
    rows.click()
    page.get_by_role("button", name="Submit again").click()
    dialog = page.get_by_role("dialog", name="Submit workloads")
    expect(dialog.get_by_role("combobox", name="Start from")).to_have_attribute(
        "placeholder", re.compile("Job by-form-")
    )
    expect(dialog.get_by_label("Name", exact=True)).to_have_attribute("placeholder", "by-form- and a random ending")
    dialog.get_by_role("button", name="My templates").click()
    page.get_by_label("Name of the template").fill("by form")
    page.get_by_label("Name of the template").press("Enter")
    expect(page.get_by_role("button", name="Delete the template by form")).to_be_visible()
    manifest.fill("kind: Job")
    page.get_by_role("button", name="by form", exact=True).click()
    expect(manifest).to_contain_text("generateName: by-form-")
    dialog.get_by_role("button", name="Submit", exact=True).click()
    expect(page.get_by_role("alert").get_by_role("link", name=re.compile("by-form-"))).to_be_visible()
    page.goto("/workloads?search=by-form-")
    expect(rows).to_have_count(2)


ONE_NODE = """
apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata: {name: one-node}
spec:
  nodeLabels: {kubernetes.io/hostname: gpu-node-01}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: one-node}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu, memory, nvidia.com/gpu, nvidia.com/total-gpumem, nvidia.com/total-gpucores]
    flavors:
    - name: one-node
      resources:
      - {name: cpu, nominalQuota: 64}
      - {name: memory, nominalQuota: 1Ti}
      - {name: nvidia.com/gpu, nominalQuota: 100}
      - {name: nvidia.com/total-gpumem, nominalQuota: 1000000}
      - {name: nvidia.com/total-gpucores, nominalQuota: 1000}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: a-single-node, namespace: ai-research}
spec: {clusterQueue: one-node}
"""
"""A second queue of the researcher's, on one node of eight devices."""


def test_a_submission_that_could_never_start_is_offered_the_queue_that_starts_it(
    page: Page, log_in: Callable[[str], None], admin: Api
) -> None:
    admin.apply(ONE_NODE)
    log_in("researcher")
    page.goto("/workloads")
    page.get_by_role("button", name="Submit").click()
    dialog = page.get_by_role("dialog")
    queue = dialog.get_by_role("combobox", name="LocalQueue")
    expect(queue).to_have_value("ai-research/a-single-node")  # the template starts in both: the first by name
    dialog.get_by_role("combobox", name="Start from").click()
    page.get_by_role("option", name="Whole GPUs, two pods").click()
    dialog.get_by_role("textbox", name="GPUs", exact=True).fill(
        "5"
    )  # two pods need ten devices, and one node has eight
    dialog.get_by_role("button", name="Check only").click()
    result = dialog.get_by_role("alert")
    expect(result).to_contain_text("could never start")
    expect(result).to_contain_text("even when empty")
    expect(result).to_contain_text("In ai-research/research-queue it would start now.")
    result.get_by_role("button", name="Use this queue").click()
    expect(queue).to_have_value("ai-research/research-queue")
    expect(dialog.get_by_role("textbox", name="Manifest")).to_contain_text("queue-name: research-queue")
    expect(result).to_contain_text("would start now")


def test_a_row_opens_beside_the_list_and_the_address_keeps_it(
    page: Page, log_in: Callable[[str], None], admin: Api
) -> None:
    name = admin.submit("beside", memory_mib=90_000, cores_percent=100)
    log_in("admin")
    page.goto(f"/workloads?search={name}")
    page.get_by_role("row", name=name).get_by_role("cell").last.click()
    expect(page).to_have_url(re.compile("open="))
    panel = page.get_by_role("dialog")
    expect(panel).to_contain_text("It can never start: it requests 1 GPU")
    expect(page.get_by_role("row", name=name)).to_be_visible()
    page.reload()
    panel.get_by_role("link", name="Full page").click()
    expect(page).to_have_url(re.compile(f"/workloads/ai-research/{name}$"))
