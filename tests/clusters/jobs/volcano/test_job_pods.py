"""The pods of a Volcano Job: what its plugins add, beyond the recorded cases."""

from __future__ import annotations

from typing import Any

import pytest

from clusters.jobs.volcano.job_life import JobPod, JobStatus
from clusters.jobs.volcano.job_pods import flags_of, make_pod, objects_of
from clusters.jobs.volcano.job_spec import VolcanoJobSpec, read_spec
from clusters.jobs.volcano.minimum_resources import least_pods

CONTAINER = {"name": "main", "image": "busybox", "env": [{"name": "RANK", "value": "9"}]}


def job(plugins: dict[str, list[str]], **tasks: int) -> VolcanoJobSpec:
    template = {"spec": {"containers": [CONTAINER]}}
    written = [{"name": name, "replicas": replicas, "template": template} for name, replicas in tasks.items()]
    metadata = {"name": "j", "namespace": "ns", "uid": "1"}
    return read_spec({"metadata": metadata, "spec": {"tasks": written, "plugins": plugins}})


def environment(spec: VolcanoJobSpec, task: str, index: int) -> dict[str, Any]:
    pod = make_pod(spec, JobStatus(), JobPod(f"j-{task}-{index}", task, index))
    return {entry["name"]: entry.get("value") for entry in pod["spec"]["containers"][0]["env"]}


@pytest.mark.parametrize("arguments", [["--port=22"], ["--port", "22"], ["-port=22"]])
def test_flags_are_read_as_go_reads_them(arguments: list[str]) -> None:
    assert flags_of(arguments) == {"port": "22"}


def test_a_variable_that_the_author_set_stays() -> None:
    assert environment(job({"pytorch": []}, master=1, worker=2), "worker", 1)["RANK"] == "9"


def test_a_template_is_not_changed_by_its_pods() -> None:
    spec = job({"svc": [], "env": [], "ssh": []}, a=2)
    make_pod(spec, JobStatus(), JobPod("j-a-0", "a", 0))
    assert spec.tasks[0].template == {"spec": {"containers": [CONTAINER]}}


def test_pods_that_wait_for_the_master_have_an_init_container() -> None:
    spec = job({"pytorch": ["--wait-master-enabled"]}, master=1, worker=1)
    master, worker = (make_pod(spec, JobStatus(), JobPod(f"j-{name}-0", name, 0)) for name in ("master", "worker"))
    assert "initContainers" not in master["spec"]
    assert [each["name"] for each in worker["spec"]["initContainers"]] == ["wait-for-master"]
    assert "j-master-0.j" in worker["spec"]["initContainers"][0]["command"][-1]


def test_objects_beside_the_pods_are_those_of_the_plugins() -> None:
    assert objects_of(job({"env": []}, a=1)).services == []
    objects = objects_of(job({"mpi": []}, master=1, worker=2))
    assert objects.secret == "j-ssh"
    assert objects.config_maps[0]["data"]["worker.host"] == "j-worker-0.j\nj-worker-1.j"


@pytest.mark.parametrize(("minimum", "expected"), [(4, {"master": 1, "worker": 3}), (2, {"master": 1, "worker": 1})])
def test_the_least_pods_are_those_of_the_documentation(minimum: int, expected: dict[str, int]) -> None:
    tasks = [
        {"name": "worker", "replicas": 4, "minAvailable": 2},
        {"name": "master", "replicas": 1, "template": {"spec": {"priorityClassName": "high"}}},
    ]
    spec = read_spec({"metadata": {"name": "j"}, "spec": {"tasks": tasks, "minAvailable": minimum}})
    assert least_pods(spec, {"high": 1000}) == expected
