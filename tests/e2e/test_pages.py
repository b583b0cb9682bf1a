"""What operators look things up on: nodes, flavors, cohorts, LocalQueues, charts, reports and the audit."""

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.e2e.conftest import Api

TOPOLOGY = """
apiVersion: kueue.x-k8s.io/v1beta1
kind: Topology
metadata: {name: zones}
spec:
  levels: [{nodeLabel: zone}, {nodeLabel: kubernetes.io/hostname}]
"""


def test_a_node_says_who_runs_there_and_is_closed_from_its_page(
    page: Page, log_in: Callable[[str], None], admin: Api
) -> None:
    name = admin.submit("on-a-node", cpu="3")
    log_in("admin")
    page.goto(f"/workloads/ai-research/{name}")
    link = page.get_by_role("main").get_by_role("link", name=re.compile("^gpu-(a100|node)-")).first
    node = link.inner_text()
    link.click()
    expect(page.get_by_role("heading", name=node, level=1)).to_be_visible()
    main = page.get_by_role("main")
    expect(main.get_by_role("table", name="The pods of this node")).to_contain_text("on-a-node")
    expect(main.get_by_role("row", name=re.compile("^cpu "))).to_be_visible()
    expect(main.get_by_role("button", name=re.compile("^Device "))).to_have_count(8)
    for step, state in (("Cordon", "Cordoned"), ("Uncordon", "Ready")):
        main.get_by_role("button", name=step, exact=True).click()
        page.get_by_role("dialog").get_by_role("button", name=step, exact=True).click()
        expect(main.get_by_text(state, exact=True).first).to_be_visible()


def test_nodes_are_found_and_sorted_and_the_address_keeps_it(page: Page, log_in: Callable[[str], None]) -> None:
    log_in("admin")
    page.goto("/nodes")
    rows = page.get_by_role("table", name="Nodes").get_by_role("row")
    expect(rows).to_have_count(7)
    page.get_by_role("searchbox").fill("a100")
    expect(rows).to_have_count(3)
    page.get_by_role("button", name="Node", exact=True).click()
    page.get_by_role("button", name="Node", exact=True).click()
    expect(page).to_have_url(re.compile("search=a100"))
    page.reload()
    expect(rows).to_have_count(3)


def test_all_clusters_have_a_line_and_lists_say_whose_a_row_is(
    page: Page, log_in: Callable[[str], None], admin: Api
) -> None:
    admin.submit("in-a-cluster")
    log_in("admin")
    page.goto("/?cluster=*")
    line = page.get_by_role("table", name="Clusters").get_by_role("row", name=re.compile("^default "))
    expect(line).to_contain_text("Schedule")
    pages = page.get_by_role("navigation", name="Pages")
    for name, table in (("Queues", "ClusterQueues"), ("GPUs", "Devices"), ("Nodes", "Nodes"), ("Flavors", "Flavors")):
        pages.get_by_role("link", name=name).click()
        listed = page.get_by_role("table", name=table, exact=True)
        expect(listed.get_by_role("columnheader", name="Cluster", exact=True)).to_be_visible()
        expect(listed.get_by_role("row").filter(has_text="default").first).to_be_visible()
    pages.get_by_role("link", name="Cluster", exact=True).click()
    expect(page.get_by_text("This page shows one cluster")).to_be_visible()
    pages.get_by_role("link", name="Workloads").click()
    workloads = page.get_by_role("table", name="Workloads")
    expect(workloads.get_by_role("columnheader", name="Cluster", exact=True)).to_be_visible()
    workloads.get_by_role("link", name=re.compile("in-a-cluster")).first.click()
    expect(page).to_have_url(re.compile("/workloads/ai-research/.*in-a-cluster.*cluster=default"))
    expect(page.get_by_role("heading", name=re.compile("in-a-cluster"), level=1)).to_be_visible()


def test_a_tenant_sees_nodes_and_only_its_own_pods(page: Page, log_in: Callable[[str], None], admin: Api) -> None:
    admin.submit("not-yours")
    log_in("operator")
    page.goto("/nodes/gpu-node-01")
    expect(page.get_by_role("heading", name="gpu-node-01", level=1)).to_be_visible()
    expect(page.get_by_role("main")).to_contain_text("Conditions")
    expect(page.get_by_role("main")).not_to_contain_text("not-yours")
    expect(page.get_by_role("button", name="Cordon", exact=True)).to_have_count(0)


def test_a_flavor_shows_its_nodes_and_who_has_quota_of_it(page: Page, log_in: Callable[[str], None]) -> None:
    log_in("admin")
    page.goto("/flavors")
    page.get_by_role("link", name="gpu-a100-80gb").click()
    main = page.get_by_role("main")
    expect(main.get_by_role("table", name="Nodes of flavor gpu-a100-80gb").get_by_role("row")).to_have_count(3)
    expect(main.get_by_role("link", name="research", exact=True).first).to_be_visible()
    # What transformations make is measured by what it is made of.
    expect(main).to_contain_text("nvidia.com/total-gpumem")
    expect(main).not_to_contain_text("Exceeds the capacity")
    main.get_by_role("button", name="YAML", exact=True).click()
    expect(main.get_by_text("kind: ResourceFlavor")).to_be_visible()


def test_a_topology_is_a_map_of_its_domains(page: Page, log_in: Callable[[str], None], admin: Api) -> None:
    admin.apply(TOPOLOGY)
    log_in("admin")
    page.goto("/topologies/zones")
    zone = page.get_by_role("region", name=re.compile("^zone "))
    expect(zone.get_by_role("link", name=re.compile("^gpu-"))).to_have_count(6)
    page.get_by_text("cpu", exact=True).click()
    expect(zone.first).to_contain_text(re.compile(r"of [\d,.]+ free"))


def test_a_cohort_and_a_local_queue_have_pages(page: Page, log_in: Callable[[str], None]) -> None:
    log_in("admin")
    page.goto("/queues")
    page.get_by_role("link", name="ai", exact=True).click()
    expect(page.get_by_role("heading", name="ai", level=1)).to_be_visible()
    page.get_by_role("main").get_by_role("link", name="research", exact=True).click()
    page.get_by_role("main").get_by_role("link", name="research-queue", exact=True).click()
    expect(page.get_by_role("heading", name="ai-research/research-queue", level=1)).to_be_visible()
    expect(page.get_by_role("main")).to_contain_text("submits to research")


def test_charts_begin_with_what_the_server_kept(page: Page, log_in: Callable[[str], None]) -> None:
    log_in("admin")
    page.goto("/?last=15m")
    history = page.get_by_role("region", name="History")
    chart = history.get_by_role("slider").first
    expect(chart).to_be_visible()
    # A sample each fifteen seconds: the arrow keys walk them.
    expect(chart).to_have_attribute("aria-valuemax", re.compile(r"^[1-9]\d*$"))
    demand = history.get_by_role("figure", name="GPUs: demand, held and busy")
    expect(demand).to_contain_text(re.compile(r"Demand\s*\d"))
    expect(history.get_by_role("slider")).to_have_count(1)
    history.get_by_role("button", name="All charts").click()
    expect(history.get_by_role("slider").nth(3)).to_be_visible()
    history.get_by_role("button", name="Time: Last 15 minutes").click()
    page.get_by_role("button", name="Last 6 hours").click()
    expect(page).to_have_url(re.compile("last=6h"))


def test_a_chart_is_zoomed_by_drawing_and_leads_to_a_minutes_decisions(
    page: Page, log_in: Callable[[str], None]
) -> None:
    log_in("admin")
    page.goto("/?last=15m")
    lines = page.get_by_role("region", name="History").locator(".u-over").first
    expect(lines).to_be_visible()
    lines.scroll_into_view_if_needed()
    box = lines.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 0.2 * box["width"], middle)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.8 * box["width"], middle, steps=5)
    page.mouse.up()
    expect(page).to_have_url(re.compile(r"since=.*&until="))
    page.get_by_role("button", name=re.compile("^Remove ")).click()
    expect(page).not_to_have_url(re.compile("since="))

    lines.click(position={"x": box["width"] / 2, "y": box["height"] / 2})
    expect(page).to_have_url(re.compile(r"/decisions\?since=.*%3A00\.000Z&until=.*%3A00\.000Z"))
    expect(page.get_by_role("button", name=re.compile(r"^Time: .* to \d\d:\d\d$"))).to_be_visible()


def test_the_audit_is_narrowed_to_a_time(page: Page, log_in: Callable[[str], None]) -> None:
    log_in("admin")
    page.goto("/audit?until=2020-01-01T00:00:00Z")
    main = page.get_by_role("main")
    expect(main).to_contain_text("No record matches")
    main.get_by_role("button", name=re.compile("^Time: before")).click()
    page.get_by_role("button", name="Last hour").click()
    expect(page).to_have_url(re.compile("last=1h"))
    expect(main.get_by_role("table", name="The audit").get_by_role("row").nth(1)).to_be_visible()


def test_reports_are_counted_grouped_and_downloaded(page: Page, log_in: Callable[[str], None]) -> None:
    log_in("admin")
    page.goto("/reports")
    main = page.get_by_role("main")
    expect(main.get_by_role("tab", name="Waits and throughput")).to_have_attribute("aria-selected", "true")
    expect(main.get_by_role("link", name="Download CSV")).to_have_attribute("href", re.compile("format=csv"))
    for tab in ("Use and cost", "Idle devices", "Preemptions", "Fairness"):
        main.get_by_role("tab", name=tab).click()
        expect(main.get_by_role("tab", name=tab)).to_have_attribute("aria-selected", "true")
        expect(main).not_to_contain_text("cannot be shown")


def test_the_audit_is_for_admins(page: Page, log_in: Callable[[str], None]) -> None:
    log_in("admin")
    page.get_by_role("link", name="Audit").click()
    table = page.get_by_role("table", name="The audit")
    expect(table.get_by_role("row").nth(1)).to_be_visible()
    page.goto("/audit?verb=login")  # many tests ago
    table.get_by_role("row", name="Logged in").first.click()
    expect(page.get_by_role("dialog")).to_contain_text("When")


def test_what_is_not_there_says_so_inside_the_frame(page: Page, log_in: Callable[[str], None]) -> None:
    log_in("admin")
    for address, title in (
        ("/nowhere", "No page exists at this address"),
        ("/nodes/none", "No such node"),
        ("/flavors/none", "No such flavor"),
        ("/cohorts/none", "No such cohort"),
        ("/local-queues/ai-research/none", "No such LocalQueue"),
        ("/topologies/none", "No such topology"),
    ):
        page.goto(address)
        expect(page.get_by_role("main")).to_contain_text(title)
        expect(page.get_by_role("navigation", name="Pages")).to_be_visible()


def test_a_rule_tells_in_the_page(page: Page, log_in: Callable[[str], None]) -> None:
    log_in("admin")
    page.get_by_role("link", name="Notifications").click()
    page.get_by_role("radio", name="The scheduler is silent").check()
    page.get_by_role("textbox", name="After minutes").fill("5")
    page.get_by_role("button", name="Add the rule").click()
    rule = page.get_by_role("listitem").filter(has_text="The scheduler is silent")
    expect(rule).to_contain_text("after 5 min, on this page")
    rule.get_by_role("button", name=re.compile("^Send a test")).click()
    told = page.get_by_role("table", name="Notifications").get_by_role("row").filter(has_text="This is a test")
    expect(told).to_have_count(1)
    expect(page.get_by_role("link", name="Notifications: 1 unread")).to_be_visible()
    page.get_by_role("button", name="Mark all as read").click()
    expect(page.get_by_role("link", name="Notifications", exact=True)).to_be_visible()
    rule.get_by_role("button", name=re.compile("^Delete the rule")).click()
    expect(page.get_by_text("You have no rules yet.")).to_be_visible()


def test_an_admin_binds_a_role_and_takes_it_away(page: Page, log_in: Callable[[str], None]) -> None:
    log_in("admin")
    page.goto("/users")
    page.get_by_role("textbox", name="User name").fill("newcomer")
    page.get_by_role("textbox", name="In the namespace").fill("ai-research")
    page.get_by_role("button", name="Bind", exact=True).click()
    row = page.get_by_role("table", name="Roles").get_by_role("row").filter(has_text="user newcomer")
    expect(row).to_contain_text("submitter")
    expect(row).to_contain_text("namespace ai-research")
    row.get_by_role("button", name="Unbind submitter of user newcomer").click()
    page.get_by_role("dialog").get_by_role("button", name="Unbind", exact=True).click()
    expect(row).to_have_count(0)


def test_an_admin_adds_an_account_and_switches_it_off(page: Page, log_in: Callable[[str], None]) -> None:
    log_in("admin")
    page.goto("/users?tab=accounts")
    page.get_by_role("textbox", name="Name", exact=True).fill("guest")
    page.get_by_label("First password").fill("a-long-and-odd-one-7")
    page.get_by_role("button", name="Add", exact=True).click()
    row = page.get_by_role("table", name="Accounts").get_by_role("row").filter(has_text="guest")
    expect(row).to_contain_text("Active")
    row.click()
    page.get_by_role("dialog").get_by_role("button", name="Disable").click()
    expect(page.get_by_role("dialog").get_by_role("button", name="Enable")).to_be_visible()
    page.keyboard.press("Escape")
    expect(row).to_contain_text("Off")


def test_ctrl_k_finds_workloads_queues_nodes_and_pages(page: Page, log_in: Callable[[str], None], admin: Api) -> None:
    name = admin.submit("found-by-name")
    log_in("admin")
    page.goto("/")
    expect(page.get_by_role("button", name="Find anything")).to_be_visible()  # the keys are heard from now on
    field = page.get_by_role("dialog", name="Find").get_by_role("textbox")
    for text, found, address in (
        ("found-by", f"ai-research/{name}", rf"/workloads/ai-research/{name}$"),
        ("research waiting", "research", r"/queues/research$"),
        ("drain gpu-a100-02", "gpu-a100-02", r"/nodes/gpu-a100-02$"),
        ("Audit", "Audit", r"/audit$"),
    ):
        page.keyboard.press("Control+k")
        field.fill(text)
        first = page.get_by_role("option").filter(has_text=found).first
        expect(first).to_have_attribute("data-combobox-selected", "true")
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile(address))
    page.keyboard.press("g")
    page.keyboard.press("r")
    expect(page).to_have_url(re.compile(r"/reports$"))


def test_a_row_opens_in_a_new_tab_with_ctrl(page: Page, log_in: Callable[[str], None]) -> None:
    log_in("admin")
    page.goto("/nodes")
    row = page.get_by_role("row", name=re.compile("gpu-a100-02"))
    with page.expect_popup() as opened:
        row.get_by_role("cell").nth(1).click(modifiers=["Control"])
    expect(opened.value).to_have_url(re.compile("/nodes/gpu-a100-02$"))
    expect(page).to_have_url(re.compile("/nodes$"))


FLOW = """
apiVersion: flow.volcano.sh/v1alpha1
kind: JobFlow
metadata: {name: nightly, namespace: ai-research}
spec: {flows: [{name: prepare}, {name: train, dependsOn: {targets: [prepare]}}]}
"""
TEMPLATE = """
---
apiVersion: flow.volcano.sh/v1alpha1
kind: JobTemplate
metadata: {name: %s, namespace: ai-research}
spec:
  queue: research-queue
  tasks: [{name: w, replicas: 1, template: {spec: {containers: [{name: main, image: busybox}]}}}]
"""


def test_a_flow_is_listed_found_and_drawn(page: Page, log_in: Callable[[str], None], admin: Api) -> None:
    admin.apply(FLOW + TEMPLATE % "prepare" + TEMPLATE % "train")
    log_in("admin")
    page.goto("/flows")
    main = page.get_by_role("main")
    row = main.get_by_role("row", name=re.compile("nightly"))
    expect(row).to_contain_text("research-queue")
    page.keyboard.press("Control+k")
    page.get_by_role("dialog", name="Find").get_by_role("textbox").fill("nightly")
    page.get_by_role("option").filter(has_text="ai-research/nightly").click()
    expect(page).to_have_url(re.compile("/flows/ai-research/nightly$"))
    graph = main.get_by_role("region", name="Graph of the jobs")
    expect(graph.get_by_role("link", name=re.compile("nightly-"))).to_have_count(2)
    train = main.get_by_role("table", name="Jobs").get_by_role("row", name=re.compile("nightly-train"))
    expect(train).to_contain_text("It starts after nightly-prepare.")
    graph.get_by_role("link", name="nightly-prepare").click()
    expect(page).to_have_url(re.compile("/workloads/ai-research/"))


def test_an_admin_reserves_nodes_and_readers_see_the_calendar(page: Page, log_in: Callable[[str], None]) -> None:
    log_in("admin")
    page.goto("/reservations")
    main = page.get_by_role("main")
    expect(main).to_contain_text("No reservations on these days")
    main.get_by_role("button", name="New Reservation").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("textbox", name="Name", exact=True).fill("firmware")
    dialog.get_by_role("textbox", name="Purpose").fill("New firmware")
    dialog.get_by_role("textbox", name="Nodes", exact=True).fill("gpu-a100-01")
    expect(dialog.get_by_role("alert").filter(has_text="1 node, ")).to_be_visible()
    expect(dialog.get_by_role("textbox", name="Manifest")).to_contain_text("kind: Reservation")
    dialog.get_by_role("button", name="Save").click()
    row = main.get_by_role("row", name=re.compile("^firmware"))
    expect(row).to_contain_text("Planned")
    expect(row).to_contain_text("maintenance")
    expect(row.get_by_role("link", name="gpu-a100-01")).to_be_visible()
    page.context.clear_cookies()  # the admin's session lives on
    log_in("researcher")
    page.goto("/reservations")
    expect(row).to_contain_text("New firmware")
    expect(main.get_by_role("button", name="Delete firmware")).to_have_count(0)
    page.context.clear_cookies()
    log_in("admin")
    page.goto("/reservations?days=28")
    main.get_by_role("button", name="Delete firmware").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
    expect(main).to_contain_text("No reservations on these days")
