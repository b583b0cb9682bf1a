"""Slurm's habits: batch scripts as Jobs, and the tables that users of Slurm expect.

Values of options are in the forms of sbatch(1); the default formats are those of squeue(1), sacct(1) and sinfo(1).
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from accounts.models import Cluster
from kueueweb_client.slurm import SlurmError, job_of, read_options, read_script, seconds_of
from kueueweb_client.slurm_tables import clock, line, node_list, read_format
from queues.models import ClusterQueue, Job, Workload
from scheduler.leader.engine import Engine
from tests.client.conftest import Run
from tests.factories import make_node

SCRIPT = """#!/bin/bash -l
#SBATCH --job-name=train
#SBATCH -p queue
#SBATCH --gres=gpu:a100:2 -c 8
#SBATCH --mem=16G
#SBATCH -t 1-02:30:00
# a comment
#SBATCH --output=train-%j.out

echo start
#SBATCH --nodes=99
python train.py "$@"
"""


def made(script: str = SCRIPT, *given: str, image: str = "x", queue: str = "", arguments: tuple[str, ...] = ()) -> Any:
    """The Job of a script, and its warnings."""
    batch = read_script(script, given)
    found = job_of(batch, namespace="team", image=image, queue=queue, arguments=arguments, unique="0")
    return found.manifest, found.warnings


def test_the_lines_of_a_script_become_a_job() -> None:
    job, warnings = made(arguments=("a b",))
    spec = job["spec"]
    [container] = spec["template"]["spec"]["containers"]
    assert job["metadata"]["name"] == "train-0"
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "queue"
    assert container["resources"]["requests"] == {"cpu": "8", "memory": "16384Mi", "nvidia.com/gpu": "2"}
    assert spec["template"]["metadata"]["annotations"] == {"nvidia.com/use-gputype": "a100"}
    assert spec["activeDeadlineSeconds"] == 95400
    assert spec["backoffLimit"] == 0
    assert container["command"] == ["/bin/bash", "-l", "-c", SCRIPT, "bash", "a b"]
    assert [warning.split()[0] for warning in warnings] == ["--output"]


def test_options_of_the_command_line_come_before_those_of_the_script() -> None:
    job, _ = made(
        SCRIPT, "--mem-per-cpu=1G", "--mem=1G", "-J", "Other Name", "-phigh", "--qos=urgent", "--export=A=1,ALL"
    )
    [container] = job["spec"]["template"]["spec"]["containers"]
    assert job["metadata"]["name"] == "other-name-0"
    labels = job["metadata"]["labels"]
    assert (labels["kueue.x-k8s.io/queue-name"], labels["kueue.x-k8s.io/priority-class"]) == ("high", "urgent")
    assert container["resources"]["requests"]["memory"] == "1024Mi"
    assert {"name": "A", "value": "1"} in container["env"]
    assert {"name": "SLURM_JOB_NAME", "value": "Other Name"} in container["env"]


@pytest.mark.parametrize(
    ("text", "annotation"),
    [
        ("afterok:a", "a"),
        ("afterok:a:b,afterany:c,after:d", "a,b,afterany:c,after:d"),
        ("afterok:a,afterok:a", "a"),
    ],
)
def test_dependencies(text: str, annotation: str) -> None:
    job, _ = made(f"#!/bin/sh\n#SBATCH -d {text}\nx\n", queue="q")
    assert job["metadata"]["annotations"] == {"kueueweb.io/start-after": annotation}


@pytest.mark.parametrize(
    ("text", "remedy"),
    [("singleton", "afterany:NAME"), ("afternotok:a", "use afterany"), ("expand:a", "supported conditions"),
     ("after:a+5", "minutes"), ("afterok:a?afterok:b", "commas"), ("afterok:a:", "Required value"),
     (",", "a condition"), ("afterok:a,", "a condition")],
)  # fmt: skip
def test_other_dependencies_are_refused_with_the_remedy(text: str, remedy: str) -> None:
    with pytest.raises(SlurmError, match=remedy):
        made(f"#!/bin/sh\n#SBATCH --dependency={text}\nx\n", queue="q")


@pytest.mark.parametrize(
    ("text", "indices", "parallelism"),
    [
        ("0-3", [0, 1, 2, 3], 4),
        ("1,3,5-7", [1, 3, 5, 6, 7], 5),
        ("0-15:4", [0, 4, 8, 12], 4),
        ("0-9%2", [*range(10)], 2),
    ],
)
def test_arrays(text: str, indices: list[int], parallelism: int) -> None:
    job, warnings = made(f"#!/bin/sh\n#SBATCH --array={text}\necho $SLURM_ARRAY_TASK_ID\n", queue="q")
    spec = job["spec"]
    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", len(indices), parallelism)
    [container] = spec["template"]["spec"]["containers"]
    environment = {each["name"]: each for each in container["env"]}
    if indices == [*range(len(indices))]:
        assert "job-completion-index" in json.dumps(environment["SLURM_ARRAY_TASK_ID"])
    else:
        assert f"set -- {' '.join(map(str, indices))}" in container["command"][2]
    assert any(warning.startswith("--array") for warning in warnings)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30", 1800), ("30:15", 1815), ("1:30:15", 5415), ("2-12", 216000), ("2-12:30", 217800), ("2-12:30:01", 217801),
     ("UNLIMITED", 0), ("0", 0)],
)  # fmt: skip
def test_times_in_all_forms_of_the_manual(text: str, seconds: int) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize(
    "option",
    ["--nodes=2", "--dependency=singleton", "--begin=tomorrow", "--constraint=a100", "-w gpu1", "-x gpu1",
     "--exclusive", "--licenses=x", "--reservation=x", "--hold", "--gres=shard:1", "--gres=gpu:1,shard:2", "--mem=0",
     "--mem=lots", "-t soon", "--array=a", "--array=0-5000", "--gpu-bind=x", "--frobs=1", "--ntasks=0", "--nice=5"],
)  # fmt: skip
def test_options_that_a_job_cannot_honour_are_refused_by_name(option: str) -> None:
    name = {"-w": "--nodelist", "-x": "--exclude", "-t": "--time"}.get(option[:2], option.partition("=")[0])
    with pytest.raises(SlurmError, match=name):
        made(f"#!/bin/sh\n#SBATCH {option}\nx\n", queue="q")


@pytest.mark.parametrize(
    "option",
    [
        "--output=x",
        "-e x",
        "--mail-type=END",
        "--mail-user=a@b",
        "--account=x",
        "--requeue",
        "--export=ALL",
        "--open-mode=append",
    ],
)
def test_options_that_are_only_written_about_are_warned_of_by_name(option: str) -> None:
    _, warnings = made(f"#!/bin/sh\n#SBATCH {option}\nx\n", queue="q")
    name = {"-e": "--error"}.get(option[:2], option.partition("=")[0])
    assert any(warning.startswith(name) for warning in warnings)


def test_scripts_and_values_that_cannot_be_read() -> None:
    for script, given in (
        ("echo x\n", ()),
        ("", ()),
        ("#!/bin/sh\n" + "x" * 200_000, ()),
        (SCRIPT, ("--mem",)),
        (SCRIPT, ("x",)),
    ):
        with pytest.raises(SlurmError):
            made(script, *given)
    with pytest.raises(SlurmError, match="partition"):
        made("#!/bin/sh\nx\n")
    with pytest.raises(SlurmError, match="image"):
        made("#!/bin/sh\nx\n", queue="q", image="")
    assert made("#!/bin/sh\n#SBATCH --container-image=nvcr.io#nvidia/pytorch:24\nx\n", queue="q", image="")[0]
    assert read_options(["-c4", "-n", "2", "--wait"]) == {"cpus-per-task": "4", "ntasks": "2", "wait": ""}


def test_forms_of_slurms_tables() -> None:
    assert [clock(seconds) for seconds in (5, 65, 3725, 93784)] == ["0:05", "1:05", "1:02:05", "1-02:03:04"]
    assert clock(65, padded=True) == "00:01:05"
    assert node_list(["gpu-1", "gpu-2", "gpu-3", "gpu-7", "login"]) == "gpu-[1-3,7],login"
    assert node_list(["n08", "n09", "n10"]) == "n[08-10]"
    known = {"i": ("JOBID", str), "j": ("NAME", str)}
    assert line(read_format("%.5i|%.3j|%8i", known), lambda name: {"i": "ab", "j": "abcdef"}[name]) == "   ab|abc|ab"


def test_a_day_of_a_user_of_slurm(alice: Run, tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\n#SBATCH -J first -p queue -c 6\necho $1\n")
    ran = alice("sbatch", "--image", "busybox", str(script), "argument")
    assert (ran.code, ran.output.startswith("Submitted batch job first-")) == (0, True), ran
    parsable = alice("sbatch", "--image", "busybox", "--parsable", "-c", "6", "-J", "second", str(script)).output
    assert parsable.startswith("second-")
    assert len(parsable.split()) == 1
    dry = alice("sbatch", "--image", "busybox", "--test-only", str(script)).output
    assert yaml.safe_load(dry.partition("job/")[0])["kind"] == "Job"
    assert Job.objects.count() == 2
    assert alice("sbatch", "--image", "busybox", "--nodes=2", str(script)).code == 1
    later = [
        alice("sbatch", "--image", "busybox", "--test-only", f"--dependency=afterok:{name}", str(script))
        for name in ("first", parsable.strip())
    ]
    assert ['no job "first" is in namespace' in ran.output for ran in later] == [True, False]
    Engine(Cluster.objects.get(), "test").run()
    names = {row.job.name.partition("-")[0]: row.name for row in Workload.objects.select_related("job") if row.job}
    shown = alice("squeue").output.splitlines()
    assert shown[0] == "             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)"
    states = {
        cells[0]: (cells[2], cells[4])
        for cells in (row.split() for row in alice("squeue", "-h", "-o", "%i %P %u %j %t %T %R").output.splitlines())
    }
    assert {name.partition("-")[0]: state for name, state in states.items()} == {
        "first": ("alice", "R"),
        "second": ("alice", "PD"),
    }
    assert alice("squeue", "-h", "-t", "PD", "-o", "%i %j").output.split() == [parsable.strip(), names["second"]]
    assert alice("squeue", "-h", "-j", parsable.strip(), "-o", "%t").output == "PD\n"
    assert alice("squeue", "-h", "-u", "bob").output == alice("squeue", "-h", "-p", "none").output == ""
    assert alice("squeue", "-o", "%Z").code == 1
    Workload.objects.filter(name=names["first"]).update(maximum_execution_seconds=3600)
    assert alice("squeue", "-h", "--start", "-o", "%j %S").output == f"{names['second']} N/A\n"
    ClusterQueue.objects.update(backfill="easy")
    admitted = Workload.objects.get(name=names["first"]).admitted_at
    assert admitted is not None
    planned = f"{admitted + timedelta(hours=1):%Y-%m-%dT%H:%M:%S}"
    assert alice("squeue", "-h", "--start", "-o", "%j %S").output == f"{names['second']} {planned}\n"
    assert alice("squeue", "--start").output.split()[:6] == ["JOBID", "PARTITION", "NAME", "USER", "ST", "START_TIME"]
    info = alice("sinfo").output.splitlines()
    assert info[0].split() == ["PARTITION", "AVAIL", "TIMELIMIT", "NODES", "STATE", "NODELIST"]
    assert info[1].split()[:2] == ["queue", "up"]
    assert alice("sprio", "-h").output.startswith("No factors for 1 workload")
    ClusterQueue.objects.update(priority_weights={"resources": {"cpu": 100}, "queue": 10}, queue_priority=3)
    ranked = [row.split() for row in alice("sprio").output.splitlines()]
    assert ranked[0] == [
        "JOBID",
        "PARTITION",
        "PRIORITY",
        "AGE",
        "FAIRSHARE",
        "JOBSIZE",
        "PARTITION",
        "QOS",
        "NICE",
        "TRES",
    ]
    assert [row[2:] for row in ranked[1:]] == [["70", "0", "0", "0", "10", "0", "0", "cpu=60"]]
    assert alice("sprio", "-h", "-l", "-o", "%i %Y %S").output == f"{parsable.strip()} 70 0\n"
    assert alice("sprio", "-h", "-u", "bob").output == ""
    assert alice("sprio", "-o", "%Z").code == 1
    assert alice("scancel", parsable.strip()).output == f"workload/{names['second']} cancelled\n"
    assert alice("scancel").code == 2
    assert alice("scancel", "--me").output == f"workload/{names['first']} cancelled\n"
    account = alice("sacct", "--parsable2", "-a", "-o", "JobID,Partition,State,AllocCPUS,Elapsed").output.splitlines()
    assert account[0] == "JobID|Partition|State|AllocCPUS|Elapsed"
    assert {row.split("|")[2] for row in account[1:]} <= {"CANCELLED", "RUNNING"}
    assert [row.split("|")[1::2][:2] for row in account[1:]] == [["queue", "6"], ["queue", "6"]]
    assert alice("sacct", "-n", "-s", "CD").output == ""
    assert alice("sacct", "-o", "Nothing").code == 1


def test_reservations_are_applied_shown_and_seen_by_sinfo(alice: Run, tmp_path: Path) -> None:
    cluster = Cluster.objects.get()
    for name in ("r1", "r2", "r3"):
        make_node(cluster, name)
    file = tmp_path / "reservations.yaml"
    now = datetime.now(UTC).replace(microsecond=0)
    window = f"start: {now - timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}, end: {now + timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}"
    head = "apiVersion: kueueweb.io/v1\nkind: Reservation\nmetadata"
    file.write_text(
        f"{head}: {{name: firmware}}\nspec: {{{window}, nodes: {{names: [r1]}}}}\n---\n"
        f"{head}: {{name: course}}\nspec: {{{window}, nodes: {{names: [r2]}}, allowed: {{users: [bob]}}}}\n"
    )
    assert alice("apply", "-f", str(file)).code == 0
    shown = alice("get", "reservations").output.splitlines()
    assert shown[0].split() == ["NAME", "START", "END", "RECURRENCE", "UNTIL", "COUNT", "IFBUSY", "AGE"]
    assert [row.split()[0] for row in shown[1:]] == ["course", "firmware"]
    states = {
        node: row.split()[0]
        for row in alice("sinfo", "-h", "-o", "%t %N").output.splitlines()
        for node in row.split()[1].split(",")
    }
    assert (states["r1"], states["r2"]) == ("maint", "resv")
    assert states.get("r3", "idle") == "idle"
    assert alice("delete", "reservation", "firmware").code == 0
    assert [row.split()[0] for row in alice("get", "resv").output.splitlines()[1:]] == ["course"]


def test_a_job_that_waits_for_another_has_slurms_reason(alice: Run, tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\n#SBATCH -J late -p queue\nx\n")
    assert alice("sbatch", "--image", "busybox", "--dependency=afterok:missing", str(script)).code == 0
    Engine(Cluster.objects.get(), "test").run()
    assert alice("squeue", "-h", "-o", "%r %R").output == "Dependency (Dependency)\n"
    Workload.objects.update(waits_for=[], annotations={"kueue.x-k8s.io/admission-gated-by": "example.com/quota"})
    Cluster.objects.update(configuration={"featureGates": {"AdmissionGatedBy": True}})
    Engine(Cluster.objects.get(), "again").run()
    assert alice("squeue", "-h", "-o", "%r %R").output == "AdmissionGated (AdmissionGated)\n"
