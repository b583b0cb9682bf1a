"""The services of docker-compose.yml as real containers (`make test-containers` builds the image first)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import count
from typing import Final
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from kueueweb.embedded.sockets import free_port
from tests.acceptance.processes import wait_for
from tests.containers.composed import START_SECONDS, Composed, services
from tests.e2e.conftest import Api

SERVICES: Final = services()
LASTING: Final = [name for name, service in SERVICES.items() if service.get("restart") != "no"]
OURS: Final = [name for name in LASTING if SERVICES[name]["image"] == "kueueweb"]
_LIMIT: Final = "cat /sys/fs/cgroup/memory.max 2>/dev/null || cat /sys/fs/cgroup/memory/memory.limit_in_bytes"


@pytest.fixture(scope="session")
def port() -> int:
    return free_port()


@pytest.fixture(scope="session")
def composed(port: int) -> Iterator[Composed]:
    """All services, started in the order of the file's conditions."""
    with Composed(port) as running:
        running.up()
        yield running


@pytest.fixture(scope="session")
def admin(composed: Composed, port: int) -> Api:
    """REST as the demo's admin."""
    return Api(f"http://127.0.0.1:{port}", "admin")


def answers(port: int) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5):
            return True
    except (URLError, ConnectionError):
        return False


def finishes(admin: Api, name: str) -> None:
    """A job that is submitted, decided, pushed, run on the simulated cluster, and seen to end."""
    workloads: list[str] = []
    numbers = count()

    def has_finished() -> bool:
        try:
            if not workloads:  # a request that failed may have been carried out: the next one has another name
                workloads.append(admin.submit(f"{name}-{next(numbers)}", run_seconds=1))
            return bool(admin.get(f"workloads/ai-research/{workloads[0]}/")["status"] == "Finished")
        except (URLError, ConnectionError, TimeoutError):
            return False

    wait_for(f"the end of {name}", has_finished, START_SECONDS)


def test_every_service_gets_healthy(composed: Composed) -> None:
    for name in LASTING:
        wait_for(f"health of {name}", partial(composed.is_healthy, name), START_SECONDS)


def test_the_first_page_answers(composed: Composed, port: int) -> None:
    with urlopen(f"http://127.0.0.1:{port}/", timeout=30) as page:
        assert b'<div id="root">' in page.read()


def test_a_submitted_job_finishes(admin: Api) -> None:
    finishes(admin, "in-containers")


@pytest.mark.parametrize("name", OURS)
def test_ours_write_nothing_and_may_nothing(composed: Composed, name: str) -> None:
    """The limits of the file hold inside: read-only root, no capability, an ordinary user, so much memory."""
    refused = composed.run(name, "sh", "-c", "echo x >/kueueweb/written")
    assert refused.returncode != 0
    assert "Read-only file system" in refused.stderr
    assert composed.run(name, "sh", "-c", "echo x >/tmp/written && id -u").stdout.strip() == "10001"
    status = composed.run(name, "cat", "/proc/1/status").stdout
    said = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert (int(said["CapEff"], 16), int(said["CapBnd"], 16), said["NoNewPrivs"]) == (0, 0, "1")


@pytest.mark.parametrize("name", LASTING)
def test_memory_is_limited(composed: Composed, name: str) -> None:
    gibibytes = int(SERVICES[name]["mem_limit"].removesuffix("g"))
    assert int(composed.run(name, "sh", "-c", _LIMIT).stdout) == gibibytes * 2**30


@pytest.mark.parametrize("name", LASTING)
def test_a_restart_is_survived(composed: Composed, admin: Api, port: int, name: str) -> None:
    composed.restart(name)
    wait_for(f"health of {name}", lambda: composed.is_healthy(name), START_SECONDS)
    wait_for("an answer", lambda: answers(port), START_SECONDS)
    finishes(admin, f"after-{name}")
    for other in LASTING:
        wait_for(f"health of {other}", partial(composed.is_healthy, other), START_SECONDS)
