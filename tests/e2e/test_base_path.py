"""The pages below a path of a shared host: links, REST, live stream and the way through the login."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from kueueweb.embedded import children
from kueueweb.embedded.sockets import free_port
from tests.e2e.conftest import ROOT, Stack, answers, wait_until

PREFIX = "/kueueweb"


@pytest.fixture
def below(stack: Stack, tmp_path: Path) -> Iterator[str]:
    """Another web process of the same stack, below a path."""
    port = free_port()
    command = [sys.executable, "-m", "kueueweb", "serve", "--host", "127.0.0.1", "--port", str(port)]
    with (tmp_path / "log").open("wb") as output:
        environment = {**os.environ, **stack.environment, "BASE_PATH": PREFIX}
        web = children.start(command, output=output, environment=environment, directory=ROOT)
    try:
        wait_until(lambda: answers(f"http://127.0.0.1:{port}"), stack.supervisor)
        yield f"http://127.0.0.1:{port}{PREFIX}"
    finally:
        children.stop(web)


def test_from_a_deep_link_through_the_login_to_live_pages_and_the_admin(page: Page, below: str) -> None:
    page.goto(f"{below}/queues")
    page.get_by_role("textbox", name="User name").fill("admin")
    page.get_by_role("textbox", name="Password").fill("admin")
    with page.expect_websocket(lambda socket: socket.url.partition("?")[0].endswith(f"{PREFIX}/ws/live/")):
        page.get_by_role("button", name="Log in").click()
    expect(page).to_have_url(f"{below}/queues")
    expect(page.get_by_role("heading", name="Queues", level=1)).to_be_visible()
    page.get_by_role("link", name="Workloads", exact=True).first.click()
    expect(page.get_by_role("heading", name="Workloads", level=1)).to_be_visible()
    assert page.url.startswith(f"{below}/workloads")
    page.goto(f"{below}/admin/")
    expect(page.get_by_role("heading", name="Configuration and records")).to_be_visible()
