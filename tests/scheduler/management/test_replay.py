"""`manage.py replay`: a recorded cluster, before anything is installed there."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from scheduling.model.times import rfc3339
from scheduling.simulator.simulator import EPOCH
from tests.clusters.test_shadow import scenario, status_of
from tests.scheduling.other_scheduler import OtherScheduler

QUEUES = ("namespaces", "resourceFlavors", "cohorts", "clusterQueues", "localQueues")
SINGULAR = {
    "namespaces": ("v1", "Namespace"),
    "resourceFlavors": ("kueue.x-k8s.io/v1beta2", "ResourceFlavor"),
    "cohorts": ("kueue.x-k8s.io/v1beta2", "Cohort"),
    "clusterQueues": ("kueue.x-k8s.io/v1beta2", "ClusterQueue"),
    "localQueues": ("kueue.x-k8s.io/v1beta2", "LocalQueue"),
}
WITHOUT_A_TIME = json.dumps(
    {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"name": "w", "namespace": "n", "resourceVersion": "1"},
    }
)
"""A Workload that says nothing of when it was created."""
Manifest = dict[str, Any]


class Recorder:
    """What `kubectl` and an audit log say of a cluster that another scheduler runs."""

    def __init__(self, found: Mapping[str, Any]) -> None:
        self._version = 100
        self.queues = [self._stamped(key, each) for key in QUEUES for each in found.get(key) or ()]
        self.changes: list[tuple[float, Manifest, bool]] = []
        manifests = {f"{each['metadata']['namespace']}/{each['metadata']['name']}": each for each in found["workloads"]}
        last: dict[str, Manifest] = {}
        for now, key, workload in OtherScheduler(found).changes():
            self._version += 1
            made = manifests[key] if workload is None else {**manifests[key], "status": status_of(workload)}
            made = last.get(key, made) if workload is None else made
            metadata = {**made["metadata"], "resourceVersion": str(self._version)}
            last[key] = {**made, "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": metadata}
            self.changes.append((now, last[key], workload is None))

    def _stamped(self, key: str, manifest: Manifest) -> Manifest:
        version, kind = SINGULAR[key]
        metadata = {**manifest["metadata"], "resourceVersion": str(self._version)}
        return {**manifest, "apiVersion": version, "kind": kind, "metadata": metadata}

    def listed(self) -> str:
        """`kubectl get ... -o json`."""
        return json.dumps({"apiVersion": "v1", "kind": "List", "items": self.queues}, indent=4)

    def watched(self) -> str:
        """`kubectl get workloads -A -w -o json --output-watch-events`."""
        events = ({"type": "DELETED" if gone else "MODIFIED", "object": each} for _, each, gone in self.changes)
        return "\n".join(json.dumps(event, indent=4) for event in events)

    def audited(self) -> str:
        """The API server's audit log: a line for each request, and for what was refused."""
        return "\n".join(map(json.dumps, self._requests()))

    def _requests(self) -> Iterable[Manifest]:
        for now, each, gone in self.changes:
            request = {"apiVersion": "audit.k8s.io/v1", "kind": "Event", "verb": "delete" if gone else "patch"}
            answer = {"responseStatus": {"code": 200}, "responseObject": each, "stageTimestamp": rfc3339(now)}
            yield {**request, "stage": "RequestReceived"}
            yield {**request, "stage": "ResponseComplete", **answer}
            yield {**request, "stage": "ResponseComplete", **answer, "responseStatus": {"code": 409}}


def replayed(capsys: pytest.CaptureFixture[str], *files: Path, **options: Any) -> list[str]:
    call_command("replay", *map(str, files), **options)
    return capsys.readouterr().out.splitlines()


@pytest.fixture
def recorder() -> Recorder:
    return Recorder(scenario("preempt", 3))


@pytest.mark.parametrize("form", ["watched", "audited"])
def test_a_scheduler_of_our_rules_agrees(
    recorder: Recorder, tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    queues, workloads, output = tmp_path / "queues.json", tmp_path / "workloads.json.gz", tmp_path / "found.json"
    queues.write_text(recorder.listed())
    workloads.write_bytes(gzip.compress(getattr(recorder, form)().encode()))
    [said] = replayed(capsys, workloads, queues, output=output)
    found = json.loads(output.read_text())
    assert said == f"{len(found)} decisions, {len(found)} agree (100.0 %), 0 differ"
    assert {"Reserve", "Preempt"} == {each["theirs"]["act"] for each in found}
    assert found[0]["at"] >= rfc3339(EPOCH)


def test_decisions_at_the_end_of_a_recording_are_listed_apart(
    recorder: Recorder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The recording stops before the first decision."""
    first = next(
        number for number, (_, each, _) in enumerate(recorder.changes) if (each.get("status") or {}).get("admission")
    )
    recorder.changes = recorder.changes[:first]
    file = tmp_path / "recorded.json"
    file.write_text(recorder.watched() + recorder.listed())
    summary, heading, ours, theirs, *_ = replayed(capsys, file)
    assert summary == "0 decisions, 0 agree (none), 0 differ"
    assert heading == "Not compared: decisions that kueueweb would make at the end of the recording:"
    assert ": Reserve in ClusterQueue " in ours
    assert theirs == "        theirs: Wait; Not evaluated yet."


def test_another_rule_is_told_with_both_reasons(
    recorder: Recorder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The queues that we are shown have half of the quota."""
    for each in recorder.queues:
        for group in (each.get("spec") or {}).get("resourceGroups") or ():
            for quota in (quota for flavor in group["flavors"] for quota in flavor["resources"]):
                quota["nominalQuota"] = "0"
    file = tmp_path / "recorded.json"
    file.write_text(recorder.watched() + recorder.listed())
    *differences, summary = replayed(capsys, file)
    assert "0 agree" in summary
    assert "OnlyTheirs" in differences[0]
    assert differences[1].startswith("    theirs: Reserve in ClusterQueue ")
    assert differences[2].startswith("    ours: Wait")
    assert "possible" in differences[2]


def test_the_configuration_counts(recorder: Recorder, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, configuration = tmp_path / "recorded.json", tmp_path / "configuration.yaml"
    file.write_text(recorder.watched() + recorder.listed())
    head = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"
    configuration.write_text(head + "resources: {excludeResourcePrefixes: [cpu]}\n")
    assert "0 differ" not in replayed(capsys, file, configuration=configuration)[-1]
    configuration.write_text("kind: Pod\n")
    with pytest.raises(CommandError, match="Required value: one object of kind Configuration"):
        replayed(capsys, file, configuration=configuration)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "line 1: not JSON"),
        ("[]", "must be an object"),
        (
            '{"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue", "metadata": {"name": "q"}}',
            'ClusterQueue q: Unsupported value "kueue.x-k8s.io/v1beta1"',
        ),
        (
            '{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Cohort", "metadata": {"name": "c"}}',
            "Cohort c: Required value: metadata.resourceVersion",
        ),
        (
            WITHOUT_A_TIME,
            "Workload n/w: KeyError: 'creationTimestamp'",
        ),
    ],
)
def test_a_file_that_is_no_recording_is_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "file.json"
    file.write_text(text)
    with pytest.raises(CommandError, match=message):
        call_command("replay", str(file))
