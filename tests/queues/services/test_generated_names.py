"""Generated names never meet, within a call or with what is stored."""

from __future__ import annotations

import re

import pytest

from accounts.models import Cluster
from queues.models import Job, Workload
from queues.services.generated_names import draw_names
from tests.factories import make_cluster, make_workload

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster() -> Cluster:
    return make_cluster()


def test_more_names_than_chance_allows_without_meeting(cluster: Cluster) -> None:
    names = draw_names(Workload.objects.filter(cluster=cluster), [("team", "b-")] * 30_000)
    assert len(set(names)) == 30_000
    assert all(re.fullmatch("b-[bcdfghjklmnpqrstvwxz2456789]{5}", name) for name in names)


def test_what_is_stored_is_drawn_again(cluster: Cluster) -> None:
    drawn = iter(["b-taken", "b-given", "b-free", "b-other"])
    make_workload(cluster, "b-taken")
    stored = Workload.objects.filter(cluster=cluster)
    names = draw_names(stored, [("team", "b-")], given=[("team", "b-given")], draw=lambda _: next(drawn))
    assert names == ["b-free"]


def test_the_same_name_in_another_namespace_is_free(cluster: Cluster) -> None:
    assert len(draw_names(Job.objects.filter(cluster=cluster), [("team", "b-"), ("other", "b-")])) == 2
