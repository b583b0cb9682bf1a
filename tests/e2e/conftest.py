"""A browser on the whole product: the demo's processes without its made-up jobs, so that each test knows what is there.

These tests run in a pytest process of their own (`pytest tests/e2e`): Playwright leaves an event loop running, which
asynchronous tests of the same process could not share.
"""

import json
import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Locator, Page, expect

from kueueweb.demo.processes import environment, processes, seed
from kueueweb.demo.supervisor import Supervisor
from kueueweb.embedded.postgres import Postgres
from kueueweb.embedded.sockets import free_port
from kueueweb.embedded.valkey import Valkey
from tests.http_receiver import Receiver, receiving
from tests.services_plugin import short_temporary_folder

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 90
PATIENCE_MILLISECONDS = 20_000  # for what takes the way through scheduler, cluster and back
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
# As root and in containers a browser has no sandbox; and none of this needs the outside world.
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

expect.set_options(timeout=PATIENCE_MILLISECONDS)


def text_in(editor: Locator) -> str:
    """Return the text of an editor of manifests that fits its window: lines out of sight are not in the page."""
    expect(editor).to_have_class(re.compile("cm-content"))  # the plain field until its script is there has another one
    return "\n".join(editor.locator(".cm-line").all_inner_texts())


class Api:
    """REST as one account."""

    def __init__(self, server: str, username: str) -> None:
        self._server = server
        self._token = ""
        self._token = self.post("auth/token/", {"username": username, "password": username})["token"]

    def get(self, path: str) -> Any:
        return self._call(path, None)

    def post(self, path: str, body: object) -> Any:
        return self._call(path, json.dumps(body).encode())

    def apply(self, manifests: str) -> Any:
        return self._call("manifests/", manifests.encode(), "application/yaml")

    def submit(self, name: str, **sizes: Any) -> str:
        """Submit a job, to research's queue unless `queue` names another; its workload's name."""
        (created,) = self.post("workloads/", [job(name, **sizes)])["workloads"]
        return str(created["name"])

    def _call(self, path: str, body: bytes | None, content_type: str = "application/json") -> Any:
        headers = {"Content-Type": content_type} | ({"Authorization": f"Token {self._token}"} if self._token else {})
        with urlopen(Request(f"{self._server}/api/v1/{path}", body, headers), timeout=30) as answer:
            return json.load(answer)


def device_of(admin: Api, name: str, page: Page) -> dict[str, str]:
    """The slice that the workload got, as soon as it has one."""
    for _ in range(100):
        devices = admin.get(f"workloads/ai-research/{name}/")["devices"]
        if devices:
            slice_: dict[str, str] = devices[0]
            return slice_
        page.wait_for_timeout(100)
    raise AssertionError(f"{name} got no device")


def job(
    name: str,
    *,
    queue: str = "research-queue",
    gpus: int = 1,
    memory_mib: int = 8192,
    cores_percent: int = 25,
    cpu: str = "1",
    run_seconds: int = 36_000,
) -> dict[str, Any]:
    """A batch/v1 Job of one pod in the namespace ai-research, which by default runs for as long as the tests do."""
    devices = {
        "nvidia.com/gpu": str(gpus),
        "nvidia.com/gpumem": str(memory_mib),
        "nvidia.com/gpucores": str(cores_percent),
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": "ai-research",
            "labels": {"kueue.x-k8s.io/queue-name": queue},
        },
        "spec": {
            "parallelism": 1,
            "completions": 1,
            "template": {
                "metadata": {"annotations": {"kueueweb.io/run-seconds": str(run_seconds)}},
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [
                        {
                            "name": "main",
                            "image": "example.org/test:1",
                            "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}, "limits": devices},
                        }
                    ],
                },
            },
        },
    }


@dataclass(frozen=True, slots=True)
class Stack:
    """The product's processes."""

    address: str
    supervisor: Supervisor
    spans: Receiver
    """Where the traces of submissions go."""
    environment: Mapping[str, str]
    """What its processes are told."""


@contextmanager
def running_stack(settings: Mapping[str, str]) -> Iterator[Stack]:
    """A stack that knows its nodes, told these settings too."""
    with ExitStack() as opened:
        folder = opened.enter_context(short_temporary_folder())
        postgres, valkey = Postgres(folder / "postgres"), Valkey(folder / "valkey")
        opened.callback(postgres.stop, gracefully=False)
        postgres.start()
        opened.callback(valkey.stop)
        valkey.start()
        port, cluster_port = free_port(), free_port()
        told = environment(
            os.environ,
            database_url=postgres.url(),
            redis_url=valkey.url(),
            secret_key="for-tests-only",
            cluster_port=cluster_port,
        )
        spans = opened.enter_context(receiving())
        spans.answer = b""
        told |= {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": spans.url, "OTEL_BSP_SCHEDULE_DELAY": "100", **settings}
        supervisor = opened.enter_context(Supervisor(ROOT, told, folder / "logs", print))
        supervisor.run(seed())
        *servers, _ = processes(
            host="127.0.0.1", port=port, cluster_port=cluster_port, time_scale=10, snapshot=folder / "cluster.json"
        )
        for process in servers:
            supervisor.start(process)
        address = f"http://127.0.0.1:{port}"
        wait_until(lambda: answers(address), supervisor)
        admin = Api(address, "admin")
        wait_until(lambda: len(admin.get("nodes/?limit=10")["results"]) == 6, supervisor)
        yield Stack(address, supervisor, spans, told)


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    """A running stack that knows its nodes."""
    with running_stack({}) as stack:
        yield stack


@pytest.fixture(scope="session")
def server(stack: Stack) -> str:
    """The address of a running stack that knows its nodes."""
    return stack.address


def answers(address: str) -> bool:
    try:
        with urlopen(f"{address}/readyz", timeout=5):
            return True
    except (URLError, ConnectionError):
        return False


def wait_until(done: Callable[[], bool], supervisor: Supervisor) -> None:
    deadline = time.monotonic() + START_SECONDS
    pause = threading.Event()
    while not done():
        supervisor.revive()
        assert time.monotonic() < deadline, f"the stack was not there after {START_SECONDS} s"
        pause.wait(0.2)


@pytest.fixture(scope="session")
def admin(server: str) -> Api:
    """REST as the admin."""
    return Api(server, "admin")


@pytest.fixture(scope="session")
def base_url(server: str) -> str:
    """pytest-playwright's hook: addresses in tests are relative to it."""
    return server


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    """pytest-playwright's hook: the machine's own browser."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        if os.environ.get("KUEUEWEB_REQUIRE_BROWSER"):
            pytest.fail("There is no Chromium on this machine.")
        pytest.skip("There is no Chromium on this machine (Debian: apt install chromium).")
    return {**browser_type_launch_args, "executable_path": found, "args": list(ARGUMENTS)}


@pytest.fixture(scope="session")
def browser_context_args(browser_context_args: dict[str, Any]) -> dict[str, Any]:
    """pytest-playwright's hook: a usual window."""
    return {**browser_context_args, "viewport": {"width": 1440, "height": 900}}


@pytest.fixture
def page(page: Page) -> Iterator[Page]:
    """A page that tolerates no error of a script, no breach of the content policy and no failure of the server."""
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on(
        "response",
        lambda response: errors.append(f"{response.status} {response.url}") if response.status >= 500 else None,
    )
    page.on("console", lambda message: errors.append(message.text) if "Content Security" in message.text else None)
    yield page
    assert errors == []


@pytest.fixture(scope="session")
def sessions() -> dict[str, Any]:
    """The cookies of the accounts that have logged in: ten logins a minute are all that one account may try."""
    return {}


@pytest.fixture
def log_in(page: Page, sessions: dict[str, Any]) -> Callable[[str], None]:
    """Opens the dashboard as a demo account."""

    def as_account(username: str) -> None:
        if username in sessions:
            page.context.add_cookies(sessions[username])
            page.goto("/")
            expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
            return
        page.goto("/login")
        page.get_by_role("textbox", name="User name").fill(username)
        page.get_by_role("textbox", name="Password").fill(username)
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
        sessions[username] = page.context.cookies()

    return as_account
