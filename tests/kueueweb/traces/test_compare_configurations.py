"""`manage.py compare-configurations` writes one file about a trace through two configurations."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from io import StringIO
from pathlib import Path
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from history.models import UsageRecord
from kueueweb.openb_trace import UnreadableTrace
from kueueweb.traces.recorded_jobs import recorded_jobs
from kueueweb.traces.trace_files import read_jobs
from tests.factories import make_cluster

EXAMPLES = Path(__file__).resolve().parents[3] / "docs/examples/compared"
FIRST, SECOND = EXAMPLES / "one-queue.yaml", EXAMPLES / "queue-of-each-class.yaml"
OPENB = [
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time",
    "pod-2,8000,1024,2,1000,,BE,Succeeded,100,400,100",
    "pod-1,500,1024,1,460,,LS,Running,40,100,50",
    "pod-3,500,1024,1,1000,,LS,Failed,40,100,",
]
SACCT = [
    "JobID|Account|Partition|Submit|Elapsed|AllocTRES|State|NNodes",
    "7|Physics|gpu|2026-01-05T09:00:00|1-02:03:04|cpu=16,gres/gpu=8,mem=100G,node=2|COMPLETED|2",
    "7.batch|Physics||2026-01-05T09:00:00|1-02:03:04|cpu=16|COMPLETED|2",
    "8_1|Physics|gpu,cpu|2026-01-05T08:00:00|10:00|cpu=1,mem=512M,node=1|FAILED|1",
    "9|Physics|gpu|2026-01-05T08:00:00|00:00:00||CANCELLED by 0|1",
]


@pytest.mark.parametrize("resources", ["gres/gpu:a100=6,gres/gpu:h100=2", "gres/gpu=8,gres/gpu:a100=6,gres/gpu:h100=2"])
def test_gpus_of_types_are_counted_once(resources: str) -> None:
    first = next(job for job in read_jobs([SACCT[0], SACCT[1].replace("gres/gpu=8", resources)]) if job.name == "job-7")
    assert first.devices == 8


def test_pods_of_openb_are_jobs_from_their_scheduling_to_their_deletion() -> None:
    first, second = read_jobs(OPENB)
    assert (first.name, first.queue, first.submitted_at, first.run_seconds, first.devices) == (
        "pod-1",
        "ls",
        0,
        50,
        0.46,
    )
    assert first.requests == {
        "cpu": "500m", "memory": "1024Mi", "nvidia.com/gpu": "1", "nvidia.com/gpucores": "46",
        "nvidia.com/gpumem-percentage": "46",
    }  # fmt: skip
    assert (second.name, second.submitted_at, second.devices, second.requests["nvidia.com/gpu"]) == (
        "pod-2",
        60,
        2.0,
        "2",
    )


def test_jobs_of_sacct_are_read_without_their_steps_and_without_those_that_never_ran() -> None:
    first, second = read_jobs(SACCT)
    assert (first.name, first.submitted_at, first.run_seconds, first.pods) == ("job-8-1", 0, 600, 1)
    assert (second.namespace, second.queue, second.pods, second.devices) == ("physics", "gpu", 2, 8)
    assert (second.submitted_at, second.run_seconds) == (3600, 93_784)
    assert second.requests == {"cpu": "8.0", "memory": "50.000Gi", "nvidia.com/gpu": "4"}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["a,b"], 'line 1: Unsupported value "a,b"'),
        ([], "line 1: Unsupported value"),
        ([OPENB[0], OPENB[1].replace(",400,", ",x,")], 'line 2: deletion_time: Invalid value: "x"'),
        ([SACCT[0], SACCT[1].replace("1-02:03:04", "soon")], 'line 2: Elapsed: Invalid value: "soon"'),
        ([SACCT[0], SACCT[1].replace("2026-01-05T09", "05.01.2026 09")], "line 2: Submit: Invalid value"),
        (["JobID|Elapsed"], "line 1: Required value: column Submit"),
    ],
)
def test_a_trace_that_cannot_be_read_names_line_and_column(lines: list[str], message: str) -> None:
    with pytest.raises(UnreadableTrace, match=re.escape(message)):
        read_jobs(lines)


@pytest.mark.parametrize("lines", [OPENB, SACCT], ids=["openb", "sacct"])
def test_one_page_has_both_configurations(tmp_path: Path, lines: list[str]) -> None:
    trace, page, figures = tmp_path / "trace", tmp_path / "page.html", tmp_path / "figures.json"
    trace.write_text("\n".join(lines))
    for output in (page, figures):
        call_command(
            "compare_configurations",
            str(trace),
            str(FIRST),
            str(SECOND),
            "--output",
            str(output),
            stdout=StringIO(),
        )
    text = page.read_text()
    assert "<th>one-queue</th><th>queue-of-each-class</th>" in text
    assert "src=" not in text  # one file to send
    assert "href=" not in text
    [inside] = re.findall(r'id="figures">(.*)</script>', text)
    assert json.loads(inside) == json.loads(figures.read_text())
    assert [each["started"] for each in json.loads(inside)["configurations"]] == [2, 2]


def test_nodes_of_openb_have_devices(tmp_path: Path) -> None:
    trace, nodes, output = tmp_path / "trace", tmp_path / "nodes", tmp_path / "found.json"
    trace.write_text("\n".join(OPENB))
    nodes.write_text("sn,cpu_milli,memory_mib,gpu,model\nn1,64000,262144,2,P100\n")
    call_command(
        "compare_configurations",
        str(trace),
        str(FIRST),
        str(SECOND),
        "--output",
        str(output),
        "--nodes",
        str(nodes),
        stdout=StringIO(),
    )
    first, _ = json.loads(output.read_text())["configurations"]
    assert (first["devices"], first["started"]) == (2.0, 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kind: Secret\n", 'first.yaml: kind: Unsupported value "Secret"'),
        ("kind: Namespace\nmetadata: {name: a}\n", "first.yaml: Required value: at least one LocalQueue"),
        ("a: [", "is not YAML"),
    ],
)
def test_a_configuration_that_cannot_be_read_is_named(tmp_path: Path, text: str, message: str) -> None:
    trace, first = tmp_path / "trace", tmp_path / "first.yaml"
    trace.write_text("\n".join(OPENB))
    first.write_text(text)
    with pytest.raises(CommandError, match=re.escape(message)):
        call_command(
            "compare_configurations", str(trace), str(first), str(SECOND), "--output", str(tmp_path / "x.html")
        )
    assert not (tmp_path / "x.html").exists()


@pytest.mark.django_db
def test_records_of_use_are_jobs_with_all_their_runs() -> None:
    cluster, now, uid = make_cluster(), timezone.now(), uuid4()
    common = {
        "cluster": cluster, "workload_uid": uid, "namespace": "team", "workload_name": "a", "local_queue": "main",
        "cluster_queue": "q", "priority": 5, "pods": 2,
        "held": {"default": {"cpu": 4000, "nvidia.com/gpu": 2}, "gpus": {"device": 2}},
    }  # fmt: skip
    for hours, queued in ((9, 10), (3, 5)):
        start = now - timedelta(hours=hours)
        UsageRecord.objects.create(
            **common, queued_at=now - timedelta(hours=queued), reserved_at=start, started_at=start,
            ended_at=start + timedelta(hours=1), outcome="Preempted",
        )  # fmt: skip
    [found] = recorded_jobs(cluster, now - timedelta(days=1))
    assert (found.run_seconds, found.pods, found.devices, found.priority) == (7200.0, 2, 2.0, 5)
    assert (found.submitted_at, found.requests) == (0.0, {"cpu": "2", "nvidia.com/gpu": "1"})
    assert recorded_jobs(cluster, now) == []
