"""The overview moves with the cluster, without a reload."""

import re
from collections.abc import Callable

from playwright.sync_api import Locator, Page, Request, expect

from tests.e2e.conftest import Api


def stat(page: Page, label: str) -> Locator:
    """The box of one total."""
    return page.get_by_text(label, exact=True).locator("..")


def live(page: Page) -> Locator:
    """What says whether the page hears from the cluster."""
    return page.locator("[role=status][data-status]")


def test_a_submitted_job_shows_up_in_the_numbers(page: Page, log_in: Callable[[str], None], admin: Api) -> None:
    log_in("admin")
    expect(live(page)).to_have_text("Live")
    devices = stat(page, "Devices in use")
    expect(devices).to_contain_text("of 48")
    before = int(re.findall(r"(\d+) of 48", devices.inner_text().replace("\n", " "))[0])
    admin.submit("overview-exclusive", memory_mib=32_768, cores_percent=100)
    expect(devices).to_contain_text(re.compile(rf"{before + 1}\s*of 48"))


def test_the_parts_of_the_product_are_alive(page: Page, log_in: Callable[[str], None]) -> None:
    log_in("admin")
    health = page.get_by_role("heading", name="Health").locator("../..")
    expect(health.get_by_text("Alive", exact=True)).to_have_count(3)


def test_it_says_so_when_nothing_is_heard_any_more(page: Page, log_in: Callable[[str], None]) -> None:
    log_in("admin")
    expect(live(page)).to_have_text("Live")
    page.context.set_offline(True)
    expect(live(page)).not_to_have_text("Live")
    page.context.set_offline(False)
    expect(live(page)).to_have_text("Live")


def test_a_first_visit_loads_at_most_250_kb_of_scripts(page: Page, log_in: Callable[[str], None]) -> None:
    log_in("admin")
    scripts: list[Request] = []
    page.on("requestfinished", lambda request: scripts.append(request) if request.resource_type == "script" else None)
    page.context.new_cdp_session(page).send("Network.setCacheDisabled", {"cacheDisabled": True})
    page.goto("/")
    page.get_by_role("heading", name="Overview", level=1).wait_for()
    expect(live(page)).to_have_text("Live")
    assert len(scripts) > 10
    assert sum(request.sizes()["responseBodySize"] for request in list(scripts)) <= 250_000
