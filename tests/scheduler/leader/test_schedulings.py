"""Several clusters in one process: one whose scheduling fails stops itself alone."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from accounts.models import Cluster
from queues.models import Workload
from scheduler.leader.engine import Engine
from scheduler.leader.recovery import MAX_FAILURES, SchedulingFailed
from scheduler.leader.schedulings import FIRST_PAUSE_SECONDS, Schedulings
from tests.factories import make_cluster, make_cluster_queue, make_workload

pytestmark = pytest.mark.django_db(transaction=True)

UNREADABLE: dict[str, Any] = {"resources": {"transformations": [{}]}}
"""A Configuration that no form takes: the cluster cannot be loaded."""


@pytest.fixture(autouse=True)
def folder(settings: Any, tmp_path: Path) -> None:
    settings.FAILED_BATCH_FOLDER = str(tmp_path)


def start(kind: type[Engine], cluster: Cluster, aside: Collection[str]) -> Engine:
    return kind(cluster, "test", aside=aside)


def status(cluster: Cluster) -> str:
    return Workload.objects.get(cluster=cluster).status


def test_a_cluster_that_cannot_be_loaded_holds_up_itself_alone() -> None:
    clusters = [make_cluster(name) for name in ("broken", "well")]
    for cluster in clusters:
        make_cluster_queue(cluster)
        make_workload(cluster, "one")
    broken, well = clusters
    Cluster.objects.filter(pk=broken.pk).update(configuration=UNREADABLE)
    now = [0.0]
    schedulings = Schedulings(start, steady=lambda: now[0])
    for _ in range(MAX_FAILURES):
        schedulings.run(broken)
        schedulings.run(well)
    assert (status(broken), status(well)) == ("Pending", "Admitted")
    assert schedulings.is_well

    Cluster.objects.filter(pk=broken.pk).update(configuration={})
    schedulings.run(broken)
    assert status(broken) == "Pending", "it pauses"
    now[0] += FIRST_PAUSE_SECONDS
    schedulings.run(broken)
    assert status(broken) == "Admitted"


def test_where_no_cluster_is_well_the_process_is_told_to_end() -> None:
    broken = make_cluster("broken", configuration=UNREADABLE)
    schedulings = Schedulings(start)
    for _ in range(MAX_FAILURES - 1):
        assert not schedulings.run(broken)
        assert not schedulings.is_well
    with pytest.raises(SchedulingFailed):
        schedulings.run(broken)
