"""What a reader of the dashboard waits for, in a real browser on the whole product; each figure beside its bar.

    python tests/benchmarks/benchmark_dashboard.py [WORKLOADS] [SOCKETS]

The first script and the first contentful paint of a first visit; the longest task while all of WORKLOADS (10,000) rows
are scrolled through; from a decision to its row in the list while SOCKETS (500) more listen to the one web process, and
to all of these. The browser, the sockets and the product share the machine: on a busy one the ratios are too high.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import django
from playwright.sync_api import Browser, Page, Request, sync_playwright
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Origin

if TYPE_CHECKING:
    from tests.e2e.conftest import Api

ROUNDS = 20
VISITS = 5
BATCH = 200
QUEUED_BY_NOBODY = "no-such-queue"
"""Workloads of a queue that is not there are listed and cost the scheduler nothing."""
PAINT = """() => new Promise((resolve) => new PerformanceObserver((list) => {
    const found = list.getEntriesByName('first-contentful-paint');
    if (found.length > 0) resolve(found[0].startTime);
}).observe({ type: 'paint', buffered: true }))"""
OBSERVE_LONG_TASKS = """() => {
    window.longTasks = [];
    new PerformanceObserver((list) => window.longTasks.push(...list.getEntries().map((task) => task.duration)))
        .observe({ type: 'longtask' });
}"""
SCROLL = """() => {
    const table = document.querySelector('table');
    const frame = table.parentElement;
    const atEnd = frame.scrollTop + frame.clientHeight >= frame.scrollHeight - 2;
    frame.scrollBy(0, 0.9 * frame.clientHeight);
    return [frame.querySelectorAll('tr[data-index]').length, Number(table.ariaRowCount) - 1, atEnd];
}"""
"""By most of what is seen. How many rows are in the page, how many there are (-2: more than are loaded), and whether it
had come to the end before."""
WATCH_ROW = """(name) => new Promise((resolve) => {
    const shown = () => [...document.querySelectorAll('tr[data-index]')].some(
        (row) => row.textContent.includes(name) && row.textContent.includes('Admitted'));
    const tell = () => shown() && (observer.disconnect(), resolve(Date.now()));
    const observer = new MutationObserver(tell);
    observer.observe(document.body, { childList: true, subtree: true, characterData: true });
    tell();
})"""


def say(what: str, value: float, bar: float, unit: str) -> None:
    """A figure and how much of its bar it takes: up to 1 it is met."""
    print(f"{what}: {value:,.0f} {unit} ({value / bar:.2f} x the bar of {bar:,.0f} {unit})", flush=True)


def p95(values: Sequence[float]) -> float:
    return sorted(values)[int(0.95 * (len(values) - 1) + 0.5)]


def first_visits(browser: Browser, address: str) -> None:
    """Each with an empty cache."""
    paints, scripts = [], []
    for _ in range(VISITS):
        with browser.new_context(base_url=address) as context:
            page = context.new_page()
            sizes: list[int] = []
            page.on("requestfinished", partial(_note_script, sizes))
            page.goto("/login", wait_until="networkidle")
            paints.append(page.evaluate(PAINT))
            scripts.append(sum(sizes))
    say("First contentful paint of the login (median)", sorted(paints)[VISITS // 2], 1000, "ms")
    say("Scripts of the login, compressed", max(scripts) / 1000, 250, "kB")
    paints, scripts, shown = [], [], []
    cookies = _logged_in(browser, address)
    for _ in range(VISITS):
        with browser.new_context(base_url=address) as context:
            context.add_cookies(cookies)
            page = context.new_page()
            sizes = []
            page.on("requestfinished", partial(_note_script, sizes))
            page.goto("/")
            page.get_by_role("heading", name="Overview", level=1).wait_for()
            shown.append(page.evaluate("performance.now()"))
            paints.append(page.evaluate(PAINT))
            scripts.append(sum(sizes))
    say("First contentful paint of the overview (median)", sorted(paints)[VISITS // 2], 1000, "ms")
    print(f"The overview itself is there after (median): {sorted(shown)[VISITS // 2]:,.0f} ms")
    say("Scripts before the overview, compressed", max(scripts) / 1000, 250, "kB")


def _note_script(sizes: list[int], request: Request) -> None:
    if request.resource_type == "script":
        sizes.append(request.sizes()["responseBodySize"])


def _logged_in(browser: Browser, address: str) -> list[Any]:
    with browser.new_context(base_url=address) as context:
        page = context.new_page()
        page.goto("/login")
        page.get_by_role("textbox", name="User name").fill("admin")
        page.get_by_role("textbox", name="Password").fill("admin")
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="Overview", level=1).wait_for()
        found: list[Any] = context.cookies()
        return found


def scroll(page: Page, workloads: int) -> None:
    """From the first row to the last, page after page as the reader would."""
    page.goto("/workloads")
    page.get_by_role("table", name="Workloads").locator("tr[data-index]").first.wait_for()
    page.evaluate(OBSERVE_LONG_TASKS)
    started, drawn, count = time.monotonic(), 0, 0
    while time.monotonic() < started + 600:
        in_page, count, at_end = page.evaluate(SCROLL)
        drawn = max(drawn, in_page)
        page.wait_for_timeout(30)
        if count >= workloads and at_end:
            break
    tasks: list[float] = page.evaluate("window.longTasks")
    print(f"{count:,} rows scrolled in {time.monotonic() - started:.0f} s, at most {drawn} of them in the page; "
          f"tasks over 50 ms: {len(tasks)}, over 100 ms: {sum(task > 100 for task in tasks)}")  # fmt: skip
    say(f"Longest task while {workloads:,} rows are scrolled", max(tasks, default=0), 100, "ms")


@contextmanager
def listeners(address: str, token: str, count: int) -> Iterator[dict[str, list[float]]]:
    """So many live sockets in a thread of their own: when each heard of a workload, by its name."""
    heard: dict[str, list[float]] = {}
    ready, over, loop = threading.Event(), asyncio.Event(), asyncio.new_event_loop()

    async def listen(socket: ClientConnection) -> None:
        async for frame in socket:
            for name in re.findall(r"bench-[0-9]+", frame if isinstance(frame, str) else frame.decode()):
                heard.setdefault(name, []).append(time.time())

    async def run() -> None:
        url = address.replace("http", "ws", 1) + "/ws/live/?cluster=default"
        headers = {"Authorization": f"Token {token}"}
        sockets: list[ClientConnection] = []
        for _ in range(count):
            opened = connect(url, additional_headers=headers, origin=Origin(address), max_size=None, open_timeout=60)
            sockets.append(await opened)  # one after the other, as readers come
        tasks = [asyncio.create_task(listen(socket)) for socket in sockets]
        print(f"{len(sockets)} sockets are open", flush=True)
        ready.set()
        await over.wait()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, *(socket.close() for socket in sockets), return_exceptions=True)

    thread = threading.Thread(target=lambda: loop.run_until_complete(run()), daemon=True)
    thread.start()
    if not ready.wait(300):
        raise SystemExit("The sockets were not open after 300 s.")
    yield heard
    loop.call_soon_threadsafe(over.set)
    thread.join(60)


def decisions(page: Page, admin: Api, heard: dict[str, list[float]], sockets: int) -> None:
    """From the time of a decision to the row that says so, and to the frame in each socket."""
    page.goto("/workloads?search=bench-")
    page.get_by_role("main").wait_for()
    page.wait_for_timeout(2000)
    rows, frames, missed = [], [], 0
    for number in range(ROUNDS):
        name = admin.submit(f"bench-{number}", gpus=1, memory_mib=256, cores_percent=1, cpu="10m")
        seen = page.evaluate(WATCH_ROW, name) / 1000
        row = admin.get(f"workloads/ai-research/{name}/")
        decided = datetime.fromisoformat(row["admitted_at"]).timestamp()
        rows.append(1000 * (seen - decided))
        page.wait_for_timeout(300)
        times = heard.get(f"bench-{number}", [])
        missed += sockets - min(sockets, len(times))
        # The first that each socket heard; later ones tell of its pods.
        frames += [1000 * (at - decided) for at in sorted(times) if at >= decided][:sockets]
    say(f"Decision to row with {sockets} sockets, median", sorted(rows)[ROUNDS // 2], 500, "ms")
    say(f"Decision to row with {sockets} sockets, p95", p95(rows), 500, "ms")
    if frames:
        say(f"Decision to frame over {sockets} sockets, p95", p95(frames), 500, "ms")
    print(f"Frames that had not come 300 ms after the row: {missed} of {ROUNDS * sockets}")


def submit_many(admin: Api, count: int) -> None:
    """Rows for the list, some hundred in one request."""
    pod_sets = [{"requests": {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"}}]
    like_all = {"namespace": "ai-research", "local_queue": QUEUED_BY_NOBODY, "pod_sets": pod_sets}
    for first in range(0, count, BATCH):
        names = [f"row-{number}" for number in range(first, min(first + BATCH, count))]
        admin.post("workloads/", [like_all | {"name": name} for name in names])


def main(workloads: int = 10_000, sockets: int = 500) -> None:
    """All figures, one after the other."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kueueweb.settings")
    django.setup()
    from tests.e2e.conftest import ARGUMENTS, BROWSERS, Api, running_stack

    limits = {"MAX_SOCKETS_PER_USER": str(sockets + 10), "MAX_CONNECTIONS_PER_ADDRESS": str(sockets + 100)}
    executable = next(filter(None, map(shutil.which, BROWSERS)), None)
    if executable is None:
        raise SystemExit("There is no Chromium on this machine (Debian: apt install chromium).")
    with running_stack(limits) as stack, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=list(ARGUMENTS))
        first_visits(browser, stack.address)
        admin = Api(stack.address, "admin")
        with browser.new_context(base_url=stack.address, viewport={"width": 1440, "height": 900}) as context:
            context.add_cookies(_logged_in(browser, stack.address))
            page = context.new_page()
            token = admin.post("auth/token/", {"username": "admin", "password": "admin"})["token"]
            with listeners(stack.address, token, sockets) as heard:
                decisions(page, admin, heard, sockets)
            submit_many(admin, workloads)
            scroll(page, workloads)
        browser.close()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
