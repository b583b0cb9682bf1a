"""The state of an earlier moment on the pages of the present, where nothing can be changed."""

import re
import time
from collections.abc import Callable
from urllib.parse import quote

from playwright.sync_api import Page, expect

from tests.e2e.conftest import Api

SECONDS = 60


def first_checkpoint(admin: Api) -> str:
    """The moment of the first one; the demo takes it within 15 seconds."""
    until = time.monotonic() + SECONDS
    while not (taken := admin.get("checkpoints/")["taken_at"]):
        assert time.monotonic() < until, "no checkpoint was taken"
        time.sleep(0.5)
    return str(taken[0])


def test_a_moment_is_shown_on_the_pages_and_left_again(page: Page, log_in: Callable[[str], None], admin: Api) -> None:
    at = first_checkpoint(admin)
    name = admin.submit("after-the-checkpoint")
    log_in("admin")
    page.goto("/workloads")
    main = page.get_by_role("main")
    expect(main.get_by_text(name).first).to_be_visible()
    page.goto(f"/workloads?at={quote(at)}")
    banner = main.get_by_role("status").filter(has_text="As of")
    expect(banner).to_contain_text("The state at this moment. Nothing can be changed here.")
    expect(main.get_by_text(name)).to_have_count(0)
    expect(page.get_by_role("button", name=re.compile("^(New|Submit)"))).to_have_count(0)
    for page_name in ("Queues", "GPUs", "Nodes", "Overview"):
        page.get_by_role("navigation", name="Pages").get_by_role("link", name=page_name, exact=True).click()
        expect(page.get_by_role("heading", name=page_name, level=1)).to_be_visible()
        expect(banner).to_be_visible()
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="Decisions", exact=True).click()
    expect(main).to_contain_text("This page shows the current state")
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="Workloads", exact=True).click()
    banner.get_by_role("button", name="Back to now").click()
    expect(banner).to_have_count(0)
    expect(main.get_by_text(name).first).to_be_visible()
    expect(page).not_to_have_url(re.compile("at="))


def test_a_moment_is_chosen_by_its_time(page: Page, log_in: Callable[[str], None], admin: Api) -> None:
    first_checkpoint(admin)
    log_in("researcher")
    page.goto("/queues")
    page.get_by_role("button", name="Look back").click()
    field = page.get_by_label(re.compile("^Time "))
    field.fill("2020-01-01T00:00")
    expect(page.get_by_text(re.compile("^The earliest checkpoint is from "))).to_be_visible()
    expect(page.get_by_role("button", name="Show", exact=True)).to_be_disabled()


def test_a_moment_without_a_checkpoint_says_which_is_the_earliest(
    page: Page, log_in: Callable[[str], None], admin: Api
) -> None:
    first_checkpoint(admin)
    log_in("admin")
    page.goto("/queues?at=2020-01-01T00:00:00Z")
    expect(page.get_by_role("main")).to_contain_text("The earliest is from")
    page.get_by_role("button", name="Back to now").click()
    expect(page.get_by_role("main").get_by_text("research", exact=False).first).to_be_visible()
