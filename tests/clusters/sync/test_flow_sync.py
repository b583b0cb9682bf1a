"""JobFlows that users create in a cluster with kubectl: their jobs, their status, and the end of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from django.db import OperationalError

from clusters.api_objects import JOB_FLOWS, JOB_TEMPLATES, NAMESPACES, JsonObject
from clusters.client import WatchEvent
from clusters.sync.volcano import flow_sync
from queues.models import Job
from queues.services.flows.flow_deletion import delete_completed_flows
from queues.services.flows.job_flows import job_flows
from queues.services.flows.start_gates import open_start_gates
from queues.services.jobs import delete_jobs
from simulation.api.resources import BY_KIND, crd_of
from tests.clusters.system import CRDS, System
from tests.clusters.test_job_flows import flow

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def volcano(system: System) -> System:
    """A cluster with the definitions of JobFlow and JobTemplate."""
    for kind in (JOB_FLOWS, JOB_TEMPLATES):
        system.client.create(CRDS, crd_of(BY_KIND[kind.api_version, kind.kind]))
    system.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    return system


def create(system: System, text: str, *, templates: bool = True, **labels: str) -> JsonObject:
    """Create the objects of a flow as kubectl does."""
    made, *others = yaml.safe_load_all(text)
    made["metadata"]["labels"] = labels or {"kueue.x-k8s.io/queue-name": "queue"}
    for each in others if templates else ():
        system.client.create(JOB_TEMPLATES, each)
    return system.client.create(JOB_FLOWS, made)


def turns(system: System, number: int = 1) -> None:
    for _ in range(number):
        system.watcher.resync()
        system.watcher.tick()
        open_start_gates(system.cluster, system.moment())
        system.turn()
        system.watcher.tick()


def seen(system: System) -> JsonObject:
    found = system.client.get(JOB_FLOWS, "team", "f")
    assert found is not None
    return found


def phase(system: System) -> Any:
    return (seen(system).get("status") or {}).get("state", {}).get("phase")


def jobs() -> set[str]:
    return set(Job.objects.filter(deletion_requested_at=None).values_list("name", flat=True))


def test_a_flow_of_kubectl_runs_and_gets_volcanos_status(volcano: System) -> None:
    create(volcano, flow())
    turns(volcano)
    status = seen(volcano)["status"]
    assert status["state"] == {"phase": "Running"}
    assert (status["runningJobs"], status["pendingJobs"], status["completedJobs"]) == (["f-a"], [], [])
    assert [each["name"] for each in status["jobStatusList"]] == ["f-a"]
    assert status["conditions"]["f-a"]["phase"] == "Running"
    turns(volcano, 8)
    status = seen(volcano)["status"]
    assert (status["state"]["phase"], status["completedJobs"]) == ("Succeed", ["f-a", "f-b"])
    assert status["conditions"]["f-b"]["runningDuration"].endswith("s")
    assert all(each["endTimestamp"] for each in status["jobStatusList"])
    assert jobs() == {"f-a", "f-b"}
    told = json.loads(seen(volcano)["metadata"]["annotations"]["kueueweb.io/translated"])
    assert told["kept"]["spec.flows[1].dependsOn.targets"] == "kueueweb.io/start-after: f-a"


def test_the_jobs_are_deleted_once_the_cluster_knows_that_the_flow_has_succeeded(volcano: System) -> None:
    create(volcano, flow("delete"))
    turns(volcano)
    for _ in range(8):
        open_start_gates(volcano.cluster, volcano.moment())
        volcano.turn()
    assert {job.phase.value for flow in job_flows(volcano.cluster) for job in flow.jobs} == {"Completed"}
    assert delete_completed_flows(volcano.cluster, volcano.moment()) == 0
    assert (phase(volcano), jobs()) == ("Running", {"f-a", "f-b"})
    volcano.watcher.tick()
    assert (phase(volcano), jobs()) == ("Succeed", {"f-a", "f-b"})
    volcano.watcher.tick()
    turns(volcano, 3)
    assert (phase(volcano), jobs()) == ("Succeed", set())
    restarted = type(volcano.watcher)(volcano.cluster, volcano.client, clock=volcano.now, steady=volcano.now)
    restarted.resync()
    restarted.tick()
    assert (phase(volcano), jobs()) == ("Succeed", set())


def test_a_flow_without_a_queue_stays_volcanos(volcano: System) -> None:
    create(volcano, flow(), app="other")
    turns(volcano)
    assert (jobs(), phase(volcano)) == (set(), None)


def test_a_flow_waits_for_its_templates(volcano: System) -> None:
    create(volcano, flow(), templates=False)
    turns(volcano)
    told = json.loads(seen(volcano)["metadata"]["annotations"]["kueueweb.io/translated"])
    assert "no JobTemplate of this name" in told["refused"]["spec.flows[0].name"]
    assert jobs() == set()
    for each in list(yaml.safe_load_all(flow()))[1:]:
        volcano.client.create(JOB_TEMPLATES, each)
    turns(volcano)
    assert jobs() == {"f-a", "f-b"}
    assert "refused" not in json.loads(seen(volcano)["metadata"]["annotations"]["kueueweb.io/translated"])


def test_a_deleted_flow_ends_its_jobs_also_if_no_watcher_sees_it(volcano: System) -> None:
    create(volcano, flow())
    turns(volcano)
    volcano.client.delete(JOB_FLOWS, "team", "f")
    turns(volcano, 3)
    assert jobs() == set()
    assert volcano.pods() == []


def test_a_flow_that_is_created_again_runs_again(volcano: System) -> None:
    create(volcano, flow())
    turns(volcano, 9)
    assert phase(volcano) == "Succeed"
    volcano.client.delete(JOB_FLOWS, "team", "f")
    turns(volcano)
    create(volcano, flow(), templates=False)
    turns(volcano, 2)
    assert (phase(volcano), jobs()) == ("Running", {"f-a", "f-b"})


def test_a_flow_that_another_replaced_at_once_ends_its_jobs(volcano: System) -> None:
    before = create(volcano, flow())
    turns(volcano)
    volcano.client.delete(JOB_FLOWS, "team", "f")
    after = create(volcano, flow(), templates=False)
    events = [WatchEvent("DELETED", before), WatchEvent("ADDED", after)]
    volcano.watcher.apply([(JOB_FLOWS, event) for event in events])
    assert jobs() == set()


def test_a_flow_is_read_again_after_a_failure_of_the_database(volcano: System, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OperationalError("away")

    create(volcano, flow())
    volcano.watcher.resync()
    with monkeypatch.context() as patched:
        patched.setattr(flow_sync, "apply_jobs", fail)
        with pytest.raises(OperationalError):
            volcano.watcher.tick()
    volcano.watcher.tick()
    assert jobs() == {"f-a", "f-b"}


def test_a_flow_that_the_database_cannot_store_is_refused(volcano: System) -> None:
    made, first, second = yaml.safe_load_all(flow())
    first["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["env"] = [{"name": "A", "value": "\0"}]
    create(volcano, yaml.safe_dump_all([made, first, second]))
    turns(volcano)
    told = json.loads(seen(volcano)["metadata"]["annotations"]["kueueweb.io/translated"])
    assert told["refused"][""].startswith("cannot be stored: ")
    assert jobs() == set()


def test_the_status_tells_the_ends_of_jobs_after_another_was_deleted(volcano: System) -> None:
    create(volcano, flow())
    turns(volcano, 3)
    assert seen(volcano)["status"]["completedJobs"] == ["f-a"]
    first = Job.objects.filter(name="f-a").prefetch_related("workloads")
    delete_jobs(volcano.cluster, first, actor="alice", now=volcano.moment())
    volcano.watcher.tick()
    turns(volcano, 6)
    assert Job.objects.get(name="f-b").workloads.get().status == "Finished"
    assert "f-b" in seen(volcano)["status"]["completedJobs"]


def test_an_edit_adds_jobs_and_removes_those_that_have_not_started(volcano: System) -> None:
    create(volcano, flow())
    turns(volcano)
    more = {"kind": "JobTemplate", "metadata": {"name": "c", "namespace": "team"}}
    spec = volcano.client.get(JOB_TEMPLATES, "team", "a")["spec"]  # type: ignore[index]
    volcano.client.create(JOB_TEMPLATES, {"apiVersion": "flow.volcano.sh/v1alpha1", **more, "spec": spec})
    flows = [{"name": "a"}, {"name": "c", "dependsOn": {"targets": ["a"]}}]
    volcano.client.patch(JOB_FLOWS, "team", "f", {"spec": {"flows": flows}})
    turns(volcano)
    assert jobs() == {"f-a", "f-c"}


def test_the_names_of_other_jobs_are_refused(volcano: System) -> None:
    volcano.apply_text(flow())
    create(volcano, flow())
    turns(volcano)
    told = json.loads(seen(volcano)["metadata"]["annotations"]["kueueweb.io/translated"])
    assert told["refused"] == {"metadata.name": "Duplicate value: Job f-a, Job f-b exists"}
    assert phase(volcano) is None
    volcano.client.delete(JOB_FLOWS, "team", "f")
    turns(volcano)
    assert jobs() == {"f-a", "f-b"}


def test_the_namespaces_policy_holds_for_the_jobs_of_a_flow(volcano: System) -> None:
    made, first, second = yaml.safe_load_all(flow())
    first["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["securityContext"] = {"privileged": True}
    create(volcano, yaml.safe_dump_all([made, first, second]))
    turns(volcano)
    ((path, rule),) = json.loads(seen(volcano)["metadata"]["annotations"]["kueueweb.io/translated"])["refused"].items()
    assert path == "Job f-a, spec.template.spec.containers[0].securityContext.privileged"
    assert "Pod Security" in rule
    assert jobs() == set()


def test_without_the_definitions_flows_cost_no_query(system: System) -> None:
    system.watcher.resync()
    assert not {JOB_FLOWS, JOB_TEMPLATES} & system.watcher._served
