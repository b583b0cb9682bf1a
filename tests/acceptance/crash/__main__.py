"""python -m tests.acceptance.crash --minutes 30 --seed 1: random kill -9 under load, then a verdict.

With --jobs 500 they are of every kind, made over REST and in the cluster, which asks the webhook.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

import django


def main() -> int:
    """0 if nothing was lost and nothing is wrong."""
    # The kinds of jobs are declared beside Django's models; the database of this process is never asked.
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kueueweb.settings")
    os.environ.setdefault("SECRET_KEY", "for-tests-only-and-never-outside-them-0123456789")
    os.environ.setdefault("DATABASE_URL", "postgresql:///never-asked")
    django.setup()
    from tests.acceptance.crash.run import run

    parser = argparse.ArgumentParser(prog="python -m tests.acceptance.crash", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0, help="of kills (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of what is killed and asked for (default: %(default)s)")
    parser.add_argument("--pause", type=float, default=8.0, help="mean seconds between kills (default: %(default)s)")
    parser.add_argument("--jobs", type=int, help="of every kind: the kills end when so many are there")
    parser.add_argument("--keep", type=Path, help="a new folder for the database and the logs, which stays")
    asked = parser.parse_args()
    if asked.keep:
        asked.keep.mkdir(parents=True)
        report = run(asked.keep, asked.minutes, asked.seed, asked.pause, _say, asked.jobs)
    else:
        with tempfile.TemporaryDirectory(prefix="kueueweb-crash-", dir="/tmp", ignore_cleanup_errors=True) as folder:
            report = run(Path(folder), asked.minutes, asked.seed, asked.pause, _say, asked.jobs)
    _say(report.text())
    return 1 if report.faults else 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
