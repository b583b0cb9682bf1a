"""The demo's story: when its events are due, and that a server takes the jobs in it."""

import json
import random
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from pytest_django import Settings
from rest_framework.test import APIClient

from accounts.models import Cluster
from gpus.annotations import node_devices
from gpus.services import observed_node
from gpus.vendors import VENDORS
from kueueweb.demo.arrivals import is_arrival
from kueueweb.demo.jobs import TRAINING
from kueueweb.demo.story import RECLAIM, WHOLE_NODE, CardHealth, Event, Story, Submitted
from queues.manifests.kueue_keys import REQUIRED_TOPOLOGY, START_AFTER
from queues.models import Workload
from queues.services.flows.job_flows import job_flows
from simulation.fleet import MIXED, SEVERAL, WEST, fleet


def story(name: str = SEVERAL) -> Story:
    return Story(name, random.Random(3))


def submissions(events: list[Event]) -> list[Submitted]:
    return [event for event in events if isinstance(event, Submitted)]


def test_the_examples_fleet_has_no_story() -> None:
    assert story("example").due(1e6) == []


@pytest.mark.parametrize("name", [SEVERAL, MIXED])
def test_a_card_of_the_fleet_fails_and_works_again(name: str) -> None:
    told = story(name)
    health = [
        event for seconds in range(0, 600, 5) for event in told.due(float(seconds)) if isinstance(event, CardHealth)
    ]
    assert [event.healthy for event in health] == [False, True]
    registers = " ".join(json.dumps(node["metadata"]["annotations"]) for node in fleet(name))
    assert {event.uuid in registers for event in health} == {True}


def test_each_event_returns_and_a_late_one_comes_once() -> None:
    told = story()
    assert len(submissions(told.due(16.0))) == 2
    assert told.due(16.0) == []
    late = submissions(told.due(2_000.0))
    assert len(late) == 3
    assert told.due(2_001.0) == []
    assert submissions(told.due(2_000.0 + 301.0))


def test_its_jobs_do_not_count_as_arrivals_that_wait() -> None:
    names = [job["metadata"]["name"] for event in submissions(story().due(1e6)) for job in event.jobs]
    assert len(names) == 8
    assert not any(map(is_arrival, names))


def test_each_step_of_the_pipeline_starts_after_the_one_before() -> None:
    pipeline, _ = submissions(story().due(16.0))
    names = [job["metadata"]["name"] for job in pipeline.jobs]
    after = [job["metadata"].get("annotations", {}).get(START_AFTER) for job in pipeline.jobs]
    assert after == [None, *names[:-1]]


def test_one_job_at_a_time_waits_for_a_whole_node() -> None:
    (whole,) = (event for event in submissions(story().due(1e6)) if event.alone == WHOLE_NODE)
    assert [job["metadata"]["name"].startswith(WHOLE_NODE) for job in whole.jobs] == [True]


def test_inference_reclaims_a_rack_every_few_minutes() -> None:
    told = story()
    events = submissions([event for seconds in range(0, 1_000, 5) for event in told.due(float(seconds))])
    assert [event.alone for event in events].count(RECLAIM) == 4
    gangs = [job for event in events if event.tenant is TRAINING for job in event.jobs]
    assert len(gangs) == 3
    templates = [job["spec"]["template"]["metadata"]["annotations"] for job in gangs]
    assert [each[REQUIRED_TOPOLOGY] for each in templates] == ["topology.example.org/rack"] * 3


def test_the_clusters_have_as_many_devices_as_the_readme_says() -> None:
    counts = {name: sum(device_count(node) for node in fleet(name)) for name in (SEVERAL, WEST)}
    assert counts == {SEVERAL: 108, WEST: 8}


def device_count(manifest: dict[str, Any]) -> int:
    node = observed_node(manifest)
    return len(node_devices(node.name, node.annotations, node.capacity, {}, VENDORS, 0, node.labels).devices)


@pytest.mark.django_db
def test_a_server_takes_the_jobs(settings: Settings) -> None:
    settings.DEMO = True
    settings.DEMO_ACCOUNTS = [
        {"username": name, "password": name} for name in ("admin", "researcher", "operator", "student")
    ]
    settings.KUBERNETES_API_URL = "http://127.0.0.1:8001"
    call_command("demo_seed", "--fleet", SEVERAL)
    client = APIClient()
    for event in submissions(story().due(1e6)):
        client.force_authenticate(User.objects.get(username=event.tenant.username))
        answer = client.post("/api/v1/workloads/", list(event.jobs), format="json")
        assert answer.status_code == 201, answer.content
    assert Workload.objects.count() == 8
    assert Workload.objects.exclude(waits_for=[]).count() == 2
    (flow,) = job_flows(Cluster.objects.get())
    assert [job.after for job in flow.jobs] == [(), (flow.jobs[0].name,), (flow.jobs[1].name,)]
