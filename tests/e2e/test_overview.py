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


def test_it_begins_with_a_judgement_whose_parts_lead_to_what_they_say(
    page: Page, log_in: Callable[[str], None], admin: Api
) -> None:
    admin.submit("judged-huge", memory_mib=90_000, cores_percent=100)  # more than any device has
    log_in("admin")
    judgement = page.get_by_role("region", name="State of the cluster")
    expect(judgement).to_contain_text(re.compile(r"\d+ of 48 GPUs free"))
    expect(judgement).to_contain_text(re.compile("workloads? waits?: .*no devices free"))
    expect(page.get_by_role("link", name=re.compile("GPU 0 of gpu-node-01: .* held"))).to_be_visible()
    judgement.get_by_role("link", name=re.compile("no devices free")).click()
    expect(page).to_have_url(
        re.compile("reason=WaitingForDevices.*state=Pending|state=Pending.*reason=WaitingForDevices")
    )
    expect(page.get_by_role("table", name="Workloads")).to_contain_text("judged-huge")


def test_a_square_of_the_map_opens_its_device(page: Page, log_in: Callable[[str], None]) -> None:
    log_in("admin")
    page.get_by_role("link", name=re.compile("GPU 2 of gpu-node-01: .* held")).click()
    expect(page.get_by_role("dialog", name=re.compile("2 of gpu-node-01"))).to_be_visible()


def test_a_researcher_finds_the_own_jobs_first(page: Page, log_in: Callable[[str], None], server: str) -> None:
    name = Api(server, "researcher").submit("mine-first")
    log_in("researcher")
    jobs = page.get_by_role("heading", name="My jobs").locator("../..")
    expect(jobs.get_by_role("link", name=re.compile(name))).to_be_visible()
    expect(jobs.get_by_role("link", name="Running")).to_be_visible()


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
