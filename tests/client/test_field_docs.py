"""`kueueweb explain KIND.FIELD`: the documentation of manifests, from the server."""

from __future__ import annotations

from tests.client.conftest import Run
from tests.client.test_command_line import submit


def test_a_field_is_documented_with_its_choices_and_fields(alice: Run) -> None:
    ran = alice("explain", "clusterqueue.spec.preemption")
    assert ran.code == 0
    lines = ran.output.splitlines()
    assert lines[:3] == ["GROUP:      kueue.x-k8s.io", "KIND:       ClusterQueue", "VERSION:    v1beta2"]
    assert lines[4] == "FIELD: preemption <Object>"
    assert "  withinClusterQueue\t<string>" in lines
    assert "    enum: Never, LowerPriority, LowerOrNewerEqualPriority" in lines
    assert "    default: Never" in lines
    deep = alice("explain", "cq.spec.resourceGroups.flavors.resources")
    assert "  nominalQuota\t<Quantity> -required-" in deep.output.splitlines()


def test_all_fields_are_listed_recursively_and_an_older_version_has_its_own(alice: Run) -> None:
    ran = alice("explain", "clusterqueue", "--recursive", "--api-version", "kueue.x-k8s.io/v1beta1")
    assert "VERSION:    v1beta1" in ran.output
    assert "    cohort\t<string>" in ran.output.splitlines()
    assert "      borrowWithinCohort\t<Object>" in ran.output.splitlines()


def test_an_unknown_field_names_those_that_there_are(alice: Run) -> None:
    ran = alice("explain", "clusterqueue.spec.preemptoin")
    assert ran.code == 1
    assert 'field "preemptoin" does not exist in ClusterQueue.spec. It has: ' in ran.error
    assert "preemption" in ran.error
    missing = alice("explain", "clusterqueue", "--api-version", "example.com/v1")
    assert (missing.code, "no documentation of ClusterQueue in example.com/v1" in missing.error) == (1, True)


def test_a_workload_with_a_kinds_name_is_explained_by_its_full_name(alice: Run) -> None:
    submit(alice, "node")
    assert "KIND" not in alice("explain", "workload/node").output
