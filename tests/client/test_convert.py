"""`kueueweb convert`: the Job of a batch script, as sbatch submits it, and a report of each option."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from kueueweb_client.slurm import KEPT_AS, job_of, read_script
from queues.models import Job
from tests.client.conftest import Run

SCRIPT = """#!/bin/bash
#SBATCH -J train -p queue -c 2 --time=30 --mem=1G
#SBATCH --output=out.txt --wait
#SBATCH --dependency=afterok:prepare
python train.py
"""


def test_a_script_becomes_the_job_that_sbatch_submits(alice: Run, tmp_path: Path) -> None:
    script, ours = tmp_path / "train.sh", tmp_path / "train.yaml"
    script.write_text(SCRIPT)
    ran = alice("convert", "--image", "busybox", str(script))
    assert ran.code == 0
    lines = [line for line in ran.output.splitlines() if line.startswith(("lost: ", "kept: "))]
    text = "\n".join(line for line in ran.output.splitlines() if line not in lines)
    manifest = yaml.safe_load(text)
    assert Job.objects.count() == 0
    dry = alice("sbatch", "--image", "busybox", "--dry-run", str(script)).output
    told = ("sbatch: warning", "job/", "warning")
    submitted = yaml.safe_load("\n".join(line for line in dry.splitlines() if not line.startswith(told)))
    names = [each["metadata"].pop("name") for each in (manifest, submitted)]
    assert [name.partition("-")[0] for name in names] == ["train", "train"]
    for each in (manifest, submitted):  # SLURM_JOB_ID is the name
        [container] = each["spec"]["template"]["spec"]["containers"]
        container["env"] = [variable for variable in container["env"] if variable["name"] != "SLURM_JOB_ID"]
    assert manifest == submitted
    assert f"lost: {script}, --output is not honoured: `kueueweb logs` reads the output of pods" in lines
    assert f"lost: {script}, --wait: an option of the submission" in lines
    assert f"kept: {script}, --time=30: activeDeadlineSeconds" in lines
    assert f"kept: {script}, --dependency=afterok:prepare: the annotation kueueweb.io/start-after" in lines
    assert len(lines) == 8
    ours.write_text(text)
    for outcome in ("created", "unchanged"):
        assert f"job/{names[0]} {outcome}" in alice("apply", "-f", str(ours)).output
    assert text in alice("convert", "--image", "busybox", str(script)).output


def test_a_mistake_names_its_file_and_nothing_is_written(alice: Run, tmp_path: Path) -> None:
    good, bad, plain = (tmp_path / name for name in ("good.sh", "bad.sh", "plain.txt"))
    good.write_text(SCRIPT)
    bad.write_text("#!/bin/sh\n#SBATCH -p queue --nodes=2\nx\n")
    plain.write_text("PartitionName=a\n")
    ran = alice("convert", "--image", "busybox", str(good), str(bad))
    assert (ran.code, ran.output) == (1, "")
    assert ran.error.startswith(f"{bad}: --nodes=2: Unsupported value")
    assert "does not look like a batch script" in alice("convert", "--image", "x", str(plain)).error
    assert "No such file" in alice("convert", "--image", "x", str(tmp_path / "missing.sh")).error


@pytest.mark.parametrize("option", sorted(KEPT_AS.keys() - {"container-image", "gpus-per-task", "nodes"}))
def test_each_option_that_is_kept_changes_the_job(option: str) -> None:
    values = {"dependency": "afterok:a", "time": "5", "array": "0-3", "export": "A=b", "gres": "gpu:2"}
    needed = {"mem-per-gpu": "#SBATCH --gpus=2\n"}.get(option, "")

    def made(line: str) -> object:
        text = f"#!/bin/sh\n#SBATCH -p queue\n{needed}{line}x\n"
        found = job_of(read_script(text), namespace="team", image="x", queue="", arguments=(), unique="0").manifest
        [container] = found["spec"]["template"]["spec"]["containers"]
        del container["command"]
        return found

    assert made("") != made(f"#SBATCH --{option}={values.get(option, '7')}\n")
