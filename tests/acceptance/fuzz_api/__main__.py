"""python -m tests.acceptance.fuzz_api --examples 100: schemathesis over every operation of a server that listens.

Once each as an admin, as a tenant, as somebody without a role and without a login. It fails for a server error and for
an answer that docs/openapi.json does not promise.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

import django


def main() -> int:
    """0 if no answer broke the schema."""
    # What starts the demo's processes is declared beside Django's models; the database of this process is never asked.
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kueueweb.settings")
    os.environ.setdefault("SECRET_KEY", "for-tests-only-and-never-outside-them-0123456789")
    os.environ.setdefault("DATABASE_URL", "postgresql:///never-asked")
    django.setup()
    from tests.acceptance.fuzz_api.run import ROLES, run, say, server

    parser = argparse.ArgumentParser(prog="python -m tests.acceptance.fuzz_api", description=__doc__)
    parser.add_argument("--examples", type=int, default=100, help="per operation and role (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of what is sent (default: %(default)s)")
    parser.add_argument("--phases", default="examples,coverage,fuzzing", help="schemathesis' (default: %(default)s)")
    parser.add_argument("--roles", nargs="+", choices=ROLES, default=ROLES, help="who asks (default: all)")
    asked, more = parser.parse_known_args()
    options = ["--max-examples", str(asked.examples), "--seed", str(asked.seed), "--phases", asked.phases, *more]
    with (
        tempfile.TemporaryDirectory(prefix="kueueweb-fuzz-", dir="/tmp", ignore_cleanup_errors=True) as folder,
        server(Path(folder)) as address,
    ):
        broken = run(address, asked.roles, options)
    say(f"Broken as {', '.join(broken)}." if broken else "Every answer was as the schema promises.")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
