"""/metrics of a live stack: Kueue's and HAMi's families, and the same counts from whichever web process is asked."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final
from urllib.request import Request, urlopen

import pytest
from prometheus_client import Metric

from kueueweb.demo.processes import processes
from kueueweb.embedded.sockets import free_port
from tests.e2e.conftest import Api, Stack, answers, wait_until
from tests.scheduler.api.metrics.comparison import check_families, families_of
from tests.scheduler.api.metrics.kueue_families import COUNTER, HISTOGRAM, KUEUE_FAMILIES

Counts = Mapping[tuple[str, frozenset[tuple[str, str]]], float]
_ADMITTED: Final = "kueue_admitted_workloads_total"


@pytest.fixture(scope="module")
def scrape(admin: Api) -> Callable[[str], Mapping[str, Metric]]:
    """Reads the families that a web process has."""
    token = admin.post("auth/tokens/", {"name": "prometheus", "scopes": ["metrics"]})["token"]

    def of(address: str) -> Mapping[str, Metric]:
        with urlopen(Request(f"{address}/metrics", headers={"Authorization": f"Bearer {token}"}), timeout=30) as answer:
            return families_of(answer.read().decode())

    return of


def test_each_family_has_its_name_type_and_labels(
    stack: Stack, admin: Api, scrape: Callable[[str], Mapping[str, Metric]]
) -> None:
    admitted_before = total(counts(scrape(stack.address)), _ADMITTED)
    name = admin.submit("measured")
    wait_until(lambda: total(counts(scrape(stack.address)), _ADMITTED) > admitted_before, stack.supervisor)
    families = scrape(stack.address)
    admin.post(f"workloads/ai-research/{name}/cancel/", {})
    check_families(families, KUEUE_FAMILIES.keys() - families.keys(), legacy=False)
    filled = {name for name, family in families.items() if family.samples}
    assert len(filled & set(KUEUE_FAMILIES)) >= 40
    held = {"hami_gpu_memory_limit_bytes", "hami_vgpu_memory_allocated_bytes", "hami_vgpu_memory_limit_bytes"}
    assert held <= filled


def test_any_web_process_has_the_same_counts_whatever_was_restarted(
    stack: Stack, admin: Api, scrape: Callable[[str], Mapping[str, Metric]]
) -> None:
    port = free_port()
    web, *_ = processes(host="127.0.0.1", port=port, cluster_port=0, time_scale=1, snapshot=Path("unused"))
    stack.supervisor.start(replace(web, name="second-web"))
    second = f"http://127.0.0.1:{port}"
    wait_until(lambda: answers(second), stack.supervisor)
    before = agreed(scrape, stack.address, second)
    epoch = total(before, "kueueweb_scheduler_epoch")

    kill(stack, "scheduler", signal.SIGKILL)
    kill(stack, "web", signal.SIGTERM)
    wait_until(lambda: answers(stack.address), stack.supervisor)
    admin.submit("after-the-restart", run_seconds=1)
    wait_until(
        lambda: total(counts(scrape(second)), _ADMITTED) == total(before, _ADMITTED) + 1,
        stack.supervisor,
    )
    after = agreed(scrape, stack.address, second)
    assert total(after, "kueueweb_scheduler_epoch") > epoch, "another leader"
    assert {key for key, value in before.items() if after.get(key, 0) < value} == set(), "counters never go back"
    assert total(after, "kueue_admission_wait_time_seconds_count") == total(after, _ADMITTED)


def kill(stack: Stack, name: str, number: signal.Signals) -> None:
    """End a process; the supervisor starts it again while somebody waits."""
    pid = stack.supervisor.pid(name)
    assert pid is not None
    os.kill(pid, number)
    wait_until(lambda: stack.supervisor.pid(name) not in {None, pid}, stack.supervisor)


def agreed(scrape: Callable[[str], Mapping[str, Metric]], first: str, second: str) -> Counts:
    """What both count, once nothing has changed between three scrapes of them in turn."""
    for _ in range(50):
        found, others, again = (counts(scrape(address)) for address in (first, second, first))
        if found == again:
            assert others == found
            return found
    pytest.fail("each scrape counted something new")


def counts(families: Mapping[str, Metric]) -> Counts:
    """All counters and histograms, and the leader's epoch."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for name, family in families.items()
        if family.type in {COUNTER, HISTOGRAM} or name == "kueueweb_scheduler_epoch"
        for sample in family.samples
    }


def total(found: Counts, name: str) -> float:
    """The sum over all labels."""
    return sum(value for (name_, _), value in found.items() if name_ == name)
