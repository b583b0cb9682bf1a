"""Where kinds of jobs live in the API of a cluster."""

from __future__ import annotations

from typing import Final

from clusters.jobs.registry import JOB_KINDS

JOBS: Final = JOB_KINDS["Job"].resource
DEPLOYMENTS: Final = JOB_KINDS["Deployment"].resource
