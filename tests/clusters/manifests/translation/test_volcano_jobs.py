"""Volcano's Jobs as jobs of ours: each form, what is kept, what is lost and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusters.jobs.volcano.job_spec import POLICY_ACTIONS, POLICY_EVENTS
from clusters.manifests.translation.translated import Translation
from clusters.manifests.translation.translations import translate_all
from clusters.manifests.translation.volcano_job_objects import translate_job

TOO_MANY_TASKS = "must have at most 18 tasks: each is a pod set of the workload"
NO_CLAIMS = "has no effect: the translation creates no PersistentVolumeClaims"


def pods(**spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "busybox", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    return {"spec": {"containers": [container], **spec}}


def task(name: str = "a", replicas: int = 2, **fields: Any) -> dict[str, Any]:
    return {"name": name, "replicas": replicas, "template": pods(), **fields}


def job(*tasks: dict[str, Any], **spec: Any) -> dict[str, Any]:
    metadata = {"name": "train", "namespace": "team"}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {"tasks": list(tasks or [task()]), **spec},
    }


def translated(content: dict[str, Any]) -> dict[str, Any]:
    made = translate_job(content)
    assert made.refusals == []
    return made.manifests[0]


def lost(content: dict[str, Any]) -> set[str]:
    return {note.path for note in translate_job(content).lost}


def test_one_task_is_a_job_and_its_failed_pods_stay_so() -> None:
    made = translated(job(queue="research", ttlSecondsAfterFinished=60))
    assert (made["apiVersion"], made["kind"]) == ("batch/v1", "Job")
    assert made["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "research"}
    spec = made["spec"]
    assert (spec["parallelism"], spec["completions"], spec["ttlSecondsAfterFinished"]) == (2, 2, 60)
    assert spec["backoffLimitPerIndex"] == 0
    assert spec["template"]["spec"]["restartPolicy"] == "Never"


def test_fewer_pods_at_first_is_a_least_parallelism() -> None:
    made = translated(job(task(replicas=4), minAvailable=3))
    assert made["metadata"]["annotations"]["kueue.x-k8s.io/job-min-parallelism"] == "3"


def test_several_tasks_are_a_job_set_in_their_order() -> None:
    worker = task("worker", 3, dependsOn={"name": ["ps"]})
    made = translated(job(task("ps", 1), worker, plugins={"svc": [], "env": []}))
    assert made["kind"] == "JobSet"
    ps, workers = made["spec"]["replicatedJobs"]
    assert workers["template"]["spec"]["parallelism"] == 3
    assert workers["dependsOn"] == [{"name": "ps", "status": "Ready"}]
    variables = {entry["name"]: entry.get("value") for entry in _environment(ps["template"]["spec"])}
    assert variables["VC_WORKER_NUM"] == "3"
    assert variables["VC_PS_HOSTS"] == "train-ps-0-0.train"
    assert variables["VC_TASK_INDEX"] is None  # it comes from the label of the pod's index


def _environment(spec: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = spec["template"]["spec"]["containers"][0]["env"]
    return found


@pytest.mark.parametrize(
    ("plugin", "tasks", "kind", "roles"),
    [
        ("pytorch", ("master", "worker"), "PyTorchJob", {"Master": 1, "Worker": 2}),
        ("tensorflow", ("ps", "worker"), "TFJob", {"PS": 1, "Worker": 2}),
        ("mpi", ("master", "worker"), "MPIJob", {"Launcher": 1, "Worker": 2}),
    ],
)
def test_a_job_of_a_framework_is_its_operators_kind(
    plugin: str, tasks: tuple[str, str], kind: str, roles: dict[str, int]
) -> None:
    made = translated(job(task(tasks[0], 1), task(tasks[1], 2), plugins={plugin: []}))
    assert made["kind"] == kind
    specs = next(value for key, value in made["spec"].items() if key.endswith("ReplicaSpecs"))
    assert {role: holder["replicas"] for role, holder in specs.items()} == roles


def test_a_task_beyond_the_roles_keeps_a_job_set_and_says_so() -> None:
    content = job(task("master", 1), task("logger", 1), plugins={"pytorch": []})
    assert translated(content)["kind"] == "JobSet"
    assert "spec.plugins[pytorch]" in lost(content)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ({"event": "PodFailed", "action": "RestartPod"}, {"backoffLimit": 4}),
        ({"event": "PodFailed", "action": "RestartJob"}, {"backoffLimit": 4}),
        ({"event": "PodFailed", "action": "TerminateJob"}, {"backoffLimit": 0}),
        ({"event": "*", "action": "AbortJob"}, {"backoffLimit": 0}),
        ({"exitCode": 3, "action": "TerminateJob"}, {"backoffLimitPerIndex": 0}),
    ],
)
def test_policies_say_what_a_failed_pod_comes_to(policy: dict[str, Any], expected: dict[str, int]) -> None:
    spec = translated(job(maxRetry=5, policies=[policy]))["spec"]
    assert {key: spec[key] for key in ("backoffLimit", "backoffLimitPerIndex") if key in spec} == expected
    if "exitCode" in policy:
        assert spec["podFailurePolicy"]["rules"][0]["onExitCodes"]["values"] == [3]


def test_a_restart_of_the_whole_job_is_a_restart_of_the_job_set() -> None:
    policies = [{"event": "PodFailed", "action": "RestartJob"}, {"event": "TaskCompleted", "action": "CompleteJob"}]
    spec = translated(job(task("a"), task("b"), policies=policies))["spec"]
    assert spec["failurePolicy"] == {"maxRestarts": 2}
    assert spec["successPolicy"] == {"operator": "Any", "targetReplicatedJobs": ["a", "b"]}


@pytest.mark.parametrize(
    ("content", "path"),
    [
        (job(policies=[{"event": "Unknown", "action": "RestartJob"}]), "spec.policies[0]"),
        (job(policies=[{"event": "PodFailed", "action": "RestartPod", "timeout": "5m"}]), "spec.policies[0]"),
        (job(task("a"), task("b"), minAvailable=2), "spec.minAvailable"),
        (job(task("a"), task("b"), minSuccess=2), "spec.minSuccess"),
        (job(task(partitionPolicy={"totalPartitions": 2, "partitionSize": 1})), "spec.tasks[0].partitionPolicy"),
        (job(networkTopology={"mode": "hard"}), "spec.networkTopology"),
        (job(plugins={"ssh": []}), "spec.plugins[ssh]"),
    ],
)
def test_what_cannot_be_said_is_named(content: dict[str, Any], path: str) -> None:
    assert path in lost(content)


@pytest.mark.parametrize(
    ("content", "path", "rule"),
    [
        (job(tasks=[]), "spec.tasks", "Required value"),
        (job(task("a"), task("a")), "spec.tasks[1].name", "Duplicate value"),
        (job(task(minAvailable=3)), "spec.tasks[0].minAvailable", "must be at most replicas (2)"),
        (job(minAvailable=3), "spec.minAvailable", "must be at most the replicas of all tasks (2)"),
        (job(task("a", dependsOn={"name": ["a"]})), "spec.tasks", "dependsOn forms a cycle"),
        (job(task(dependsOn={"name": ["b"]})), "spec.tasks[0].dependsOn.name", "Not found: no task of this name"),
        (job(plugins={"ray": []}), "spec.plugins[ray]", "Unsupported value"),
        (job(policies=[{"action": "RestartJob"}]), "spec.policies[0]", "must have either events or an exitCode"),
        (job(policies=[{"exitCode": 0, "action": "AbortJob"}]), "spec.policies[0].exitCode", "0 is not an error code"),
        (job(policies=[{"event": "Bang", "action": "RestartJob"}]), "spec.policies[0].event", "Unsupported value"),
        (job(policies=[{"event": "PodFailed", "action": "Stop"}]), "spec.policies[0].action", "Unsupported value"),
        (job(volumes=[{"mountPath": "/data"}]), "spec.volumes[0]", NO_CLAIMS),
        (job(replicas=3), "spec.replicas", "unknown field"),
        (job(task(replicas=10**9)), "spec.tasks", "must have at most 50000 pods"),
        (job(*(task(f"t{n}") for n in range(20))), "spec.tasks", TOO_MANY_TASKS),
    ],
)  # fmt: skip
def test_what_volcano_refuses_is_refused_at_its_field(content: dict[str, Any], path: str, rule: str) -> None:
    found = translate_job(content)
    assert (path, rule) in {(refusal.path, refusal.rule) for refusal in found.refusals}
    assert found.manifests == []


def test_half_a_device_is_refused_with_what_to_write() -> None:
    content = job()
    content["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["resources"] = {
        "limits": {"nvidia.com/gpu": "0.5"}
    }
    (refusal,) = translate_job(content).refusals
    assert refusal.path == "spec.tasks[0].template.spec.containers[0].resources.limits[nvidia.com/gpu]"
    assert 'nvidia.com/gpumem-percentage: "50"' in refusal.remedy


def test_names_that_do_not_fit_are_left_out_and_that_is_said() -> None:
    content = job(task(replicas=40_000), plugins={"svc": []})
    assert "spec.plugins[svc]:variables" in lost(content)
    (replicated,) = translated(content)["spec"]["replicatedJobs"]
    assert "env" not in replicated["template"]["spec"]["template"]["spec"]["containers"][0]


def test_a_job_whose_name_is_made_is_translated() -> None:
    content = job(plugins={"svc": []})
    content["metadata"] = {"generateName": "train-"}
    assert translated(content)["metadata"]["generateName"] == "train-"
    assert "spec.plugins[svc]:variables" in lost(content)


@pytest.mark.parametrize("spec", [None, [], "x", {"tasks": 3}, {"tasks": ["a"]}, {"tasks": [{"replicas": "many"}]}])
def test_fields_of_another_type_are_refused_and_never_raise(spec: Any) -> None:
    content = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "x"}, "spec": spec}
    assert translate_all([content])[0].refusals


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 9) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
FIELDS = st.sampled_from(
    ["minAvailable", "policies", "plugins", "queue", "maxRetry", "volumes", "tasks", "weight", "deserved", "guarantee"]
)
KINDS = st.sampled_from(
    [
        ("batch.volcano.sh/v1alpha1", "Job"),
        ("scheduling.volcano.sh/v1beta1", "Queue"),
        ("scheduling.volcano.sh/v1beta1", "PodGroup"),
    ]
)


@given(
    KINDS, st.dictionaries(FIELDS | st.sampled_from(["weight", "deserved", "guarantee"]), VALUES, max_size=4), VALUES
)
def test_no_object_breaks_the_translation(kind: tuple[str, str], spec: dict[str, Any], metadata: Any) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    content = {"apiVersion": kind[0], "kind": kind[1], "metadata": metadata, "spec": spec}
    assert all(isinstance(made, Translation) for made in translate_all([content, pod]).values())


POLICIES = st.builds(
    lambda event, action: {"event": event, "action": action},
    st.sampled_from(sorted(POLICY_EVENTS)),
    st.sampled_from(sorted(POLICY_ACTIONS)),
)


@given(st.lists(POLICIES, max_size=3, unique_by=lambda policy: policy["event"]), st.integers(1, 3))
def test_every_policy_is_in_the_report(policies: list[dict[str, Any]], tasks: int) -> None:
    made = translate_job(job(*(task(f"t{number}") for number in range(tasks)), policies=policies))
    told = {note.path for note in [*made.kept, *made.lost]}
    assert {f"spec.policies[{number}]" for number in range(len(policies))} <= told
