"""The door."""

from playwright.sync_api import Browser, Page, expect


def test_a_visitor_is_asked_to_log_in(page: Page) -> None:
    page.goto("/workloads?state=Pending")
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


def test_the_pages_are_in_the_language_that_was_chosen(page: Page) -> None:
    page.goto("/login")
    page.get_by_role("button", name="简体中文").click()
    page.get_by_role("button", name="researcher", exact=True).click()
    expect(page.get_by_role("heading", name="总览", level=1)).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", name="总览", level=1)).to_be_visible()
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    page.get_by_role("button", name="用户：researcher").click()
    page.get_by_role("menuitem", name="English").click()
    expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()


def test_a_browser_that_wants_chinese_gets_it(browser: Browser, base_url: str) -> None:
    context = browser.new_context(base_url=base_url, locale="zh-TW")
    page = context.new_page()
    page.goto("/login")
    expect(page.get_by_role("button", name="登录")).to_be_visible()
    context.close()
