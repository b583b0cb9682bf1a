"""The command line on the running product: from the login to a job that has finished."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_from_login_to_a_finished_job(server: str, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "client"),
        "KUEUEWEB_CONFIG": str(tmp_path / "config.yaml"),
    }

    def run(*words: str, text: str = "") -> str:
        ran = subprocess.run(
            [sys.executable, "-m", "kueueweb_client.cli.app", *words],
            input=text, capture_output=True, text=True, timeout=120, check=False, env=environment,
        )  # fmt: skip
        assert ran.returncode == 0, f"{words}: {ran.returncode}\n{ran.stdout}{ran.stderr}"
        return ran.stdout

    run("login", server, "-u", "researcher", "--password-stdin", "-n", "ai-research", text="researcher\n")
    manifest = run(
        "submit", "--image", "busybox", "--queue", "research-queue", "--name", "from-the-shell",
        "--gpus", "1", "--gpu-memory", "4Gi", "--dry-run", "--", "sleep", "1",
    )  # fmt: skip
    file = tmp_path / "job.yaml"
    file.write_text(manifest[: manifest.index("job/")].replace("template:\n", RUNS_A_SECOND, 1))
    run("apply", "-f", str(file))
    names = run("get", "workloads", "-o", "name").split()
    (name,) = (name.removeprefix("workload/") for name in names if "from-the-shell" in name)
    assert run("wait", name, "--timeout", "60") == f"workload/{name} Finished\n"
    assert "Admitted" in run("describe", "workload", name)
    assert "gpu-" in run("top", "nodes")


RUNS_A_SECOND = 'template:\n    metadata:\n      annotations:\n        kueueweb.io/run-seconds: "1"\n'
