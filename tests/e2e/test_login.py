"""The door."""

from playwright.sync_api import Page, expect


def test_a_visitor_is_asked_to_log_in(page: Page) -> None:
    page.goto("/workloads?status=Pending")
    expect(page.get_by_role("button", name="Log in")).to_be_visible()


def test_a_wrong_password_is_reported_and_refused(page: Page) -> None:
    page.goto("/login")
    page.get_by_role("textbox", name="User name").fill("admin")
    page.get_by_role("textbox", name="Password").fill("wrong")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_contain_text("Not logged in")
    page.goto("/")
    expect(page.get_by_role("button", name="Log in")).to_be_visible()


def test_an_account_of_the_demo_is_one_click_away(page: Page) -> None:
    page.goto("/login")
    page.get_by_role("button", name="researcher", exact=True).click()
    expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
    expect(page.get_by_role("button", name="User: researcher")).to_be_visible()


def test_logging_out_ends_the_session(page: Page) -> None:
    page.goto("/login")  # not by log_in, whose session others go on with
    page.get_by_role("button", name="operator", exact=True).click()
    page.get_by_role("button", name="User: operator").click()
    page.get_by_role("menuitem", name="Log out").click()
    expect(page.get_by_role("button", name="Log in")).to_be_visible()
    page.goto("/gpus")
    expect(page.get_by_role("button", name="Log in")).to_be_visible()
