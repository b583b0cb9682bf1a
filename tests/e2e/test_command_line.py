"""The command line on the running product: from the login to a job that has finished."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

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


def test_a_login_through_the_page(server: str, page: Page, log_in: Callable[[str], None], tmp_path: Path) -> None:
    """The command shows a code; a person who is logged in in a browser sees what is asked for, and confirms."""
    log_in("researcher")
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "client"),
        "PYTHONUNBUFFERED": "1",
        "KUEUEWEB_CONFIG": str(tmp_path / "config.yaml"),
    }
    command = [sys.executable, "-m", "kueueweb_client.cli.app", "login", server, "--no-browser"]
    with subprocess.Popen(
        [*command, "--scope", "read", "--days", "7"], stdout=subprocess.PIPE, text=True, env=environment
    ) as waiting:
        assert waiting.stdout is not None
        shown = re.search(r"code (\S+) at", waiting.stdout.readline())
        assert shown is not None
        page.goto("/device")
        page.get_by_role("textbox", name="Code").fill(shown[1].lower())
        page.get_by_role("button", name="Continue").click()
        expect(page.get_by_text("Read-only: sees what you can see.")).to_be_visible()
        expect(page.get_by_text("For 7 days, or until you revoke it.")).to_be_visible()
        page.get_by_role("button", name="Log in the command line").click()
        expect(page.get_by_text("The command line is logged in")).to_be_visible()
        assert "as researcher" in waiting.communicate(timeout=120)[0]
        assert waiting.returncode == 0


RUNS_A_SECOND = 'template:\n    metadata:\n      annotations:\n        kueueweb.io/run-seconds: "1"\n'
