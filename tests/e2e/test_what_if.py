"""The page What if: a plan is tried by a running studio, answered twice, saved by name and opened by its link."""

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.acceptance.processes import wait_for
from tests.e2e.conftest import Api


def test_a_plan_is_tried_saved_and_opened_by_its_link(page: Page, log_in: Callable[[str], None], admin: Api) -> None:
    admin.submit("loses-its-node", cpu="3")
    node = admin.get("nodes/")["results"][0]["name"]
    log_in("admin")
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="What if").click()
    main = page.get_by_role("main")
    main.get_by_role("button", name="A node fails").click()
    changes = main.get_by_label("Changes")
    expect(changes).to_contain_text("lose: NODE")
    main.get_by_role("button", name="Try").click()
    expect(main.get_by_role("alert")).to_contain_text("There is no Node NODE")
    changes.fill(f"nodes:\n- lose: {node}\n")
    main.get_by_role("button", name="Try").click()
    expect(main.get_by_text("Effects until the cycles are idle")).to_be_visible()
    expect(main.get_by_role("heading", name="Devices")).to_be_visible()
    main.get_by_label("Name").fill("a lost node")
    main.get_by_role("button", name="Save", exact=True).click()
    expect(main.get_by_role("button", name="Copy the link")).to_be_visible()
    link = page.url
    assert re.search(r"question=\d+", link)
    page.goto("/what-if")
    expect(main.get_by_role("button", name="Try")).to_be_disabled()
    main.get_by_role("button", name="a lost node").click()
    expect(page).to_have_url(link)
    expect(changes).to_contain_text(node)


def test_a_plan_is_applied_after_a_question_and_shows_its_records_in_the_audit(
    page: Page, log_in: Callable[[str], None], admin: Api
) -> None:
    name = admin.submit("ends-by-a-plan", cpu="1")
    log_in("admin")
    page.goto("/what-if")
    main = page.get_by_role("main")
    main.get_by_label("Changes").fill(f"end: [ai-research/{name}]\n")
    main.get_by_role("button", name="Try").click()
    main.get_by_role("button", name="Apply …").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(f"Workload ai-research/{name}: cancelled for good")
    dialog.get_by_role("button", name="Apply", exact=True).click()
    expect(dialog).to_be_hidden()
    expect(main).to_contain_text("Applied by admin")
    main.get_by_role("link", name="Audit records").click()
    expect(page).to_have_url(re.compile("/audit.*request_id="))
    expect(page.get_by_role("table", name="The audit")).to_contain_text(name)
    workload = admin.get(f"workloads/ai-research/{name}/")
    assert workload["status"] in ("Evicted", "Finished") or not workload["active"]


def test_the_hours_after_a_plan_are_drawn_from_the_runs_that_have_ended(
    page: Page, log_in: Callable[[str], None], admin: Api
) -> None:
    runs = {admin.submit(f"ran-{number}", run_seconds=1) for number in range(6)}
    # Run times must be known for half of the cluster's workloads; other tests leave some whose run times are not.
    running = [admin.submit(f"ran-on-{number}") for number in range(16)]
    log_in("admin")
    page.goto("/what-if")
    main = page.get_by_role("main")

    def are_ended() -> bool:
        rows = admin.get("workloads/?status=Finished&limit=200")["results"]
        return runs <= {row["name"] for row in rows}

    wait_for("the runs to end", are_ended)
    main.get_by_label("Changes").fill("policies: {node: spread}\n")
    main.get_by_role("combobox", name="Hours ahead").click()
    page.get_by_role("option", name="6 hours").click()
    main.get_by_role("button", name="Try").click()
    expect(main.get_by_text("Effects until the cycles are idle")).to_be_visible()
    expect(main.get_by_text(re.compile("Means of .* forward runs"))).to_be_visible()
    expect(main.get_by_role("table", name="Hours ahead")).to_contain_text("research")
    expect(main.get_by_role("figure", name="Device hours")).to_be_visible()
    page.reload()
    expect(main.get_by_role("combobox", name="Hours ahead")).to_have_value("6 hours")
    for name in running:
        admin.post(f"workloads/ai-research/{name}/cancel/", {})
