"""The pictures of the README, from a running demo: python scripts/screenshots.py http://127.0.0.1:8000

Each page in light and dark into docs/images/, as an administrator sees it. Needs a Chromium of the machine's.
"""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
PAGES = {"overview": "/", "workloads": "/workloads", "queues": "/queues", "gpus": "/gpus"}
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
SETTLING_MILLISECONDS = 20_000  # the overview's curves want a few seconds of history


def main(server: str) -> None:
    """Take all of them."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
        for scheme in ("light", "dark"):
            context = browser.new_context(viewport={"width": 1440, "height": 900}, color_scheme=scheme)
            page = context.new_page()
            page.goto(f"{server}/login")
            page.get_by_role("button", name="admin", exact=True).click()
            page.get_by_role("heading", name="Overview", level=1).wait_for()
            page.wait_for_timeout(SETTLING_MILLISECONDS)
            for name, path in PAGES.items():
                if path != "/":
                    page.goto(f"{server}{path}")
                    page.wait_for_timeout(3_000)
                page.screenshot(path=IMAGES / f"{name}-{scheme}.png")
        browser.close()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1].rstrip("/"))
