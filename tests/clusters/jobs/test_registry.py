"""The registry of kinds: complete, told apart, permitted to the account that talks to the cluster, and alone in knowing
their names."""

from __future__ import annotations

import io
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import yaml

from clusters.jobs.framework.job_kind import JobKind
from clusters.jobs.registry import JOB_KINDS, KINDS
from queues.manifests.job_workloads import JOB_READERS

_ROOT = Path(__file__).parents[3]
_RBAC = _ROOT / "deploy/kubernetes/rbac.yaml"
_KNOWN_ELSEWHERE = {
    "clusters/api/pod_views.py": {"Pod"},  # what the address is of
    "clusters/api_objects.py": {"Pod"},  # pods are bound, whatever made them
    "clusters/jobs/volcano/job_pods.py": {"Pod"},  # the pods that Volcano's controller would make
    "clusters/manifests/foreign_kinds.py": {"CronJob"},  # what to write instead of a kind that is not taken
    "clusters/manifests/translation/translations.py": {"Job", "Pod"},  # what Volcano's objects are stored as
    "clusters/manifests/translation/volcano_job_flows.py": {"Job"},  # a step of a flow is a Volcano job
    "clusters/manifests/translation/volcano_job_objects.py": {"Job", "JobSet", "MPIJob", "PyTorchJob", "TFJob"},
    "clusters/manifests/translation/volcano_export.py": {
        "Job",
        "JobSet",
    },  # the kinds that a Job of Volcano can express
    "kueueweb/loadtest/shape_jobs.py": {"Job"},  # the load test submits Jobs
    "kueueweb/policies/volcano_jobs.py": {"Job"},  # Volcano's own kind
    "clusters/jobs/framework/conditions.py": {"Pod"},  # Kueue's rule for a workload that a pod owns
    "clusters/push/claims.py": {"Pod"},  # who owns a claim
    "clusters/sync/references.py": {"Pod"},
    "clusters/jobs/scenario.py": {"Pod"},  # the steps of recorded scenarios make pods
    "clusters/webhook/policy.py": {"Pod"},  # a pod is held to what a template of pods is
    "kueueweb/checkup/webhook_checks.py": {"Job"},  # what a dry run asks the webhook about
    "kueueweb/demo/jobs.py": {"Job"},  # what the demo submits
    "queues/manifests/pod_group.py": {"Pod"},  # a group of pods is one workload
    "queues/models/__init__.py": {"Job", "Pod"},  # names of tables
    "scheduling/model/limit_range.py": {"Pod"},  # a LimitRange limits containers or pods
    "scheduling/simulator/workload_manifest.py": {"Pod"},
}
"""Where a kind is named outside of its file, and why."""


def _all_kinds(base: type[JobKind] = JobKind) -> set[type[JobKind]]:
    below = base.__subclasses__()
    return {base} | {kind for each in below for kind in _all_kinds(each)}


def test_every_kind_that_has_a_file_is_registered() -> None:
    named = {kind for kind in _all_kinds() if "kind" in vars(kind)}
    assert {type(kind) for kind in JOB_KINDS.values()} == named


def test_kinds_are_written_as_kubernetes_writes_them() -> None:
    assert KINDS["batch/v1", "Job"].full_name == "batch/v1, Kind=Job"
    assert KINDS["v1", "Pod"].full_name == "/v1, Kind=Pod"


def test_every_kind_is_read() -> None:
    for kind in JOB_KINDS.values():
        assert (kind.api_version, kind.kind) in JOB_READERS


def test_the_account_in_the_cluster_may_touch_every_kind() -> None:
    roles = [each for each in yaml.safe_load_all(_RBAC.read_text()) if each["kind"] == "ClusterRole"]
    granted: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for rule in [rule for role in roles for rule in role["rules"]]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                granted[group, resource] |= set(rule["verbs"])
    for kind in JOB_KINDS.values():
        assert {"get", "list", "watch", "create", "patch", "delete"} <= granted[kind.group, kind.plural], kind.kind
        for resource in kind.refers_to:
            group = resource.api_version.partition("/")[0]
            assert {"get", "list", "watch"} <= granted[group, resource.plural], resource.kind


def _named_kinds(path: Path) -> Iterator[str]:
    for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
        if token.type == tokenize.STRING and token.string.strip("\"'") in JOB_KINDS:
            yield token.string.strip("\"'")


def test_nothing_else_in_the_product_knows_the_name_of_a_kind() -> None:
    found = defaultdict(set)
    for app in ("foundation", "kinds", "accounts", "clusters", "gpus", "kueueweb", "queues", "scheduler", "scheduling"):
        for path in (_ROOT / app).rglob("*.py"):
            place = str(path.relative_to(_ROOT))
            if place.startswith(("clusters/jobs/kinds/", "clusters/jobs/families/")) or "/migrations/" in place:
                continue
            for name in _named_kinds(path):
                found[place].add(name)
    assert dict(found) == _KNOWN_ELSEWHERE
