"""axe finds nothing serious on any page and in what opens there, light and dark, in English and Chinese."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Page, WebSocketRoute, expect

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
    "/flows",
    "/nodes/gpu-node-01",
    "/flavors",
    "/flavors/gpu-a100-80gb",
    "/decisions",
    "/reports",
    "/reports?report=usage",
    "/cluster",
    "/audit",
    "/cluster",
    "/cycles",
    "/users",
    "/users?tab=accounts",
    "/notifications",
    "/nowhere",
)
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


FINISHED = """Promise.allSettled(
    document.getAnimations()
        .filter((found) => found.effect.getComputedTiming().endTime !== Infinity)
        .map((found) => found.finished)
)"""
"""The shape of a part that loads pulses without an end."""
EVERY_RULE: dict[str, Any] = {"resultTypes": ["violations"]}
CONTRAST = {**EVERY_RULE, "runOnly": ["color-contrast"]}


def serious(page: Page, rules: dict[str, Any]) -> list[dict[str, Any]]:
    """What axe calls serious or critical: rule, number of elements, the first one and what is wrong with it."""
    found = page.evaluate("rules => axe.run(document, rules)", rules)
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


def findings(page: Page, rules: dict[str, Any] = EVERY_RULE) -> dict[str, list[dict[str, Any]]]:
    """What is serious on the page as it is now, by the scheme in which it is; nothing where nothing is."""
    page.evaluate(AXE.read_text())
    found: dict[str, list[dict[str, Any]]] = {}
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", scheme)
        page.evaluate(FINISHED)
        if problems := serious(page, rules):
            found[scheme] = problems
    return found


def settled(page: Page) -> None:
    expect(page.get_by_role("heading", level=1).first).to_be_visible()
    page.wait_for_load_state("networkidle")


def told(found: dict[str, dict[str, list[dict[str, Any]]]]) -> str:
    return "\n".join(
        f"{place}, {scheme}: {problem}"
        for place, schemes in found.items()
        for scheme, problems in schemes.items()
        for problem in problems
    )


@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_page_has_a_serious_finding(
    page: Page, log_in: Callable[[str], None], admin: Api, language: Literal["en", "zh"]
) -> None:
    name = admin.submit(f"seen-by-axe-{language}", cpu="3")
    log_in("admin")
    page.evaluate("language => localStorage.setItem('kueueweb-language', language)", language)
    found = {}
    for address in (*PAGES, f"/workloads/ai-research/{name}"):
        page.goto(address)
        settled(page)
        expect(page.locator("html")).to_have_attribute("lang", {"en": "en", "zh": "zh-CN"}[language])
        if problems := findings(page):
            found[address] = problems
    assert not found, told(found)


OPENED = {
    "columns": ("/workloads", "Columns"),
    "views": ("/workloads", "Views"),
    "label filter": ("/workloads", "Label"),
    "time filter": ("/workloads", "Time: Any time"),
    "time of charts": ("/queues/research", "Time: Last hour"),
    "submit": ("/workloads", "Submit"),
    "editor": ("/queues/research", "Edit"),
    "delete": ("/queues/research", "Delete"),
    "new flavor": ("/flavors", "New ResourceFlavor"),
    "YAML": ("/flavors/gpu-a100-80gb", "YAML"),
    "find": ("/workloads", "Find anything"),
    "drain": ("/nodes/gpu-node-01", "Drain"),
}
"""What opens where: the page and the button."""


def test_nothing_that_opens_has_a_serious_finding(page: Page, log_in: Callable[[str], None]) -> None:
    log_in("admin")
    found = {}
    for what, (address, button) in OPENED.items():
        page.goto(address)
        settled(page)
        page.get_by_role("button", name=button, exact=True).first.click()
        page.wait_for_load_state("networkidle")
        page.wait_for_timeout(500)  # what opens fades in
        if problems := findings(page):
            found[what] = problems
    assert not found, told(found)


def test_what_is_stale_stays_legible(page: Page, log_in: Callable[[str], None]) -> None:
    """Who looks during an outage still reads the numbers: they lose their colour, not their contrast."""
    sockets: list[WebSocketRoute] = []
    silent = False

    def relay(socket: WebSocketRoute) -> None:
        sockets.append(socket)
        if not silent:
            socket.connect_to_server()

    page.route_web_socket("**/ws/**", relay)
    log_in("admin")
    found = {}
    for address in ("/", "/queues/research", "/gpus"):
        silent = False
        page.goto(address)
        settled(page)
        expect(page.locator("[data-live]").first).to_be_visible()
        silent = True
        sockets[-1].close()
        expect(page.locator("[data-live-stale]")).to_be_visible()
        if problems := findings(page, CONTRAST):
            found[address] = problems
    assert not found, told(found)
