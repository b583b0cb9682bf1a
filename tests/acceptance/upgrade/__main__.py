"""python -m tests.acceptance.upgrade --from COMMIT: upgrades that commit to this one under load, and compares rows."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import django

ROOT = Path(__file__).resolve().parents[3]
LAST_WITHOUT_UPGRADE = "a058272"


def main() -> int:
    """0 if nothing was lost, nothing is wrong, and decisions went on."""
    parser = argparse.ArgumentParser(prog="python -m tests.acceptance.upgrade", description=__doc__)
    parser.add_argument("--from", dest="commit", required=True, help="the commit to upgrade")
    parser.add_argument("--seconds", type=float, default=60.0, help="of load before, and after (default: %(default)s)")
    parser.add_argument("--finished", type=int, default=0, help="rows of finished workloads to add (default: none)")
    parser.add_argument("--seed", type=int, default=1, help="of what is asked for (default: %(default)s)")
    parser.add_argument("--keep", type=Path, help="a new folder for the database and the logs, which stays")
    asked = parser.parse_args()
    if _is_too_old(asked.commit):
        _say(
            f"A database of the version {LAST_WITHOUT_UPGRADE} or older cannot be upgraded: begin with an empty one,"
            " and apply the manifests of the queues again."
        )
        return 1
    # The kinds of jobs are declared beside Django's models; the database of this process is never asked.
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kueueweb.settings")
    os.environ.setdefault("SECRET_KEY", "for-tests-only-and-never-outside-them-0123456789")
    os.environ.setdefault("DATABASE_URL", "postgresql:///never-asked")
    django.setup()
    from tests.acceptance.upgrade.run import upgrade

    with tempfile.TemporaryDirectory(prefix="kueueweb-upgrade-", dir="/tmp", ignore_cleanup_errors=True) as temporary:
        folder = asked.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o711)  # started by root, PostgreSQL runs as another user and has to reach its own folder
        before = folder / "before"
        before.mkdir()
        files = subprocess.run(("git", "archive", asked.commit), cwd=ROOT, check=True, capture_output=True).stdout
        subprocess.run(("tar", "--extract", "--directory", str(before)), input=files, check=True)
        faults = upgrade(before, folder, asked.seconds, asked.seed, asked.finished, _say)
    for fault in faults:
        _say(f"  {fault}")
    _say(f"faults: {len(faults)}")
    return 1 if faults else 0


def _is_too_old(commit: str) -> bool:
    known = subprocess.run(
        ("git", "rev-parse", "--verify", "--quiet", LAST_WITHOUT_UPGRADE), cwd=ROOT, check=False, capture_output=True
    )
    older = ("git", "merge-base", "--is-ancestor", commit, LAST_WITHOUT_UPGRADE)
    return known.returncode == 0 and subprocess.run(older, cwd=ROOT, check=False).returncode == 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
