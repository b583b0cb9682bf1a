"""The registry of kinds: complete, told apart, and permitted to the account that talks to the cluster."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import yaml

from clusters.jobs.framework.job_kind import JobKind
from clusters.jobs.registry import KINDS
from clusters.jobs.running import JOB_KINDS, OPERATED_KINDS
from queues.manifests.job_workloads import JOB_READERS

_RBAC = Path(__file__).parents[3] / "deploy/kubernetes/rbac.yaml"


def _all_kinds(base: type[JobKind] = JobKind) -> set[type[JobKind]]:
    below = base.__subclasses__()
    return {base} | {kind for each in below for kind in _all_kinds(each)}


def test_every_kind_that_has_a_file_is_registered() -> None:
    named = {kind for kind in _all_kinds() if hasattr(kind, "kind")}
    assert {type(kind) for kind in KINDS.values()} == named


def test_kinds_are_written_as_kubernetes_writes_them() -> None:
    assert KINDS["batch/v1", "Job"].full_name == "batch/v1, Kind=Job"
    assert KINDS["v1", "Pod"].full_name == "/v1, Kind=Pod"


def test_every_operated_kind_is_read_and_run() -> None:
    for rules in OPERATED_KINDS:
        assert (rules.api_version, rules.kind) in JOB_READERS
        assert JOB_KINDS[rules.kind].kind.plural == rules.plural


def test_the_account_in_the_cluster_may_touch_every_kind_that_runs_there() -> None:
    roles = [each for each in yaml.safe_load_all(_RBAC.read_text()) if each["kind"] == "ClusterRole"]
    granted: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for rule in [rule for role in roles for rule in role["rules"]]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                granted[group, resource] |= set(rule["verbs"])
    for row in JOB_KINDS.values():
        group = row.kind.api_version.rpartition("/")[0]
        assert {"get", "list", "watch", "create", "patch", "delete"} <= granted[group, row.kind.plural]
