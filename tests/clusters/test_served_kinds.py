"""Kinds whose operator a cluster lacks: named, asked for rarely, and taken as soon as they are served."""

from __future__ import annotations

import pytest

from clusters.jobs.registry import JOB_KINDS
from scheduling.model.vocabulary import WorkloadStatus
from tests.clusters.operated_jobs import operated_job
from tests.clusters.system import System

pytestmark = pytest.mark.django_db(transaction=True)

OPTIONAL = {kind.kind for kind in JOB_KINDS.values() if kind.optional}


def test_a_cluster_without_operators_names_the_kinds_that_it_lacks(system: System) -> None:
    system.cluster.refresh_from_db()
    assert system.cluster.served_kinds == []
    assert set(system.cluster.missing_kinds) == OPTIONAL
    assert not OPTIONAL & {"Job", "Pod", "Deployment", "StatefulSet", "CronJob"}


def test_a_kind_is_asked_for_only_where_it_is_served(system: System) -> None:
    asked: list[str] = []
    list_of = system.client.list

    class Counting:
        """The client, noting what is listed."""

        server = system.client.server
        served = staticmethod(system.client.served)
        get = staticmethod(system.client.get)

        def list(self, kind: object, *args: object, **options: object) -> object:
            asked.append(getattr(kind, "kind", ""))
            return list_of(kind, *args, **options)  # type: ignore[arg-type]  # whatever the watcher passes

    watcher = type(system.watcher)(system.cluster, Counting(), clock=system.now)  # type: ignore[arg-type]  # no network
    watcher.resync()
    assert not OPTIONAL & set(asked)
    system.install_operator("JobSet")
    watcher.resync()
    assert OPTIONAL & set(asked) == {"JobSet"}


def test_a_job_waits_for_its_operator_and_starts_when_it_comes(system: System) -> None:
    system.apply(operated_job("JobSet"))
    system.turn()
    workload = system.workload("train")
    assert workload.status == WorkloadStatus.ADMITTED
    assert workload.push_error.startswith("NotServed: the cluster does not serve jobset.x-k8s.io/v1alpha2 JobSet")
    assert workload.push_retry_at is not None
    system.install_operator("JobSet")
    system.watcher.resync()
    system.cluster.refresh_from_db()
    assert system.cluster.served_kinds == ["JobSet"]
    assert "JobSet" not in system.cluster.missing_kinds
    assert system.push().pushed == 1
    workload.refresh_from_db()
    assert (workload.push_error, len(system.pods())) == ("", 2)
