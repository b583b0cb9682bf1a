"""axe finds nothing serious on any page, light and dark, with live numbers on it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import Page, expect

from tests.e2e.conftest import Api

AXE = Path(__file__).parents[2] / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
PAGES = (
    "/",
    "/workloads",
    "/queues",
    "/queues/research",
    "/cohorts/ai",
    "/gpus",
    "/nodes",
    "/nodes/gpu-node-01",
    "/flavors",
    "/flavors/gpu-a100-80gb",
    "/decisions",
    "/reports",
    "/audit",
    "/users",
    "/notifications",
    "/nowhere",
)
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


def serious(page: Page) -> list[dict[str, Any]]:
    """What axe calls serious or critical: rule, number of elements, the first one and what is wrong with it."""
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        {
            "rule": violation["id"],
            "elements": len(violation["nodes"]),
            "first": violation["nodes"][0]["html"][:200],
            "summary": violation["nodes"][0]["failureSummary"],
        }
        for violation in found["violations"]
        if violation["impact"] in ("serious", "critical")
    ]


def test_no_page_has_a_serious_finding(page: Page, log_in: Callable[[str], None], admin: Api) -> None:
    name = admin.submit("seen-by-axe", cpu="3")
    log_in("admin")
    found = {}
    for address in (*PAGES, f"/workloads/ai-research/{name}"):
        page.goto(address)
        expect(page.get_by_role("heading", level=1).first).to_be_visible()
        page.wait_for_load_state("networkidle")
        expect(page.locator("[data-live-stale]")).to_have_count(0)  # what is stale is dimmed on purpose
        page.evaluate(AXE.read_text())
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", scheme)
            page.evaluate("Promise.all(document.getAnimations().map((found) => found.finished))")
            found.update({f"{address}, {scheme}": problems for problems in [serious(page)] if problems})
    assert not found, "\n".join(f"{place}: {problem}" for place, problems in found.items() for problem in problems)
