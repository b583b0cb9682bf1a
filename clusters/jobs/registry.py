"""Every kind of job, as the files in `kinds/` declare them: to add a kind, add a file to that folder."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Final

from clusters.jobs import kinds
from clusters.jobs.framework.job_kind import JobKind
from scheduling.model.vocabulary import FinishedReason


def _declared() -> Iterator[JobKind]:
    for module in sorted(found.name for found in pkgutil.iter_modules(kinds.__path__)):
        name = f"{kinds.__name__}.{module}"
        for value in vars(import_module(name)).values():
            ours = inspect.isclass(value) and issubclass(value, JobKind) and value.__module__ == name
            if ours and "kind" in vars(value):
                yield value()


JOB_KINDS: Final[Mapping[str, JobKind]] = {kind.kind: kind for kind in _declared()}
"""By kind."""
KINDS: Final[Mapping[tuple[str, str], JobKind]] = {
    (kind.api_version, kind.kind): kind for kind in JOB_KINDS.values() if kind.has_workload
}
"""The kinds with an integration, by apiVersion and kind."""


def ending_of(kind: JobKind, job: Mapping[str, object]) -> tuple[FinishedReason, str] | None:
    """Return the outcome of a job with its message; None while it has not ended."""
    outcome = kind.outcome(dict(job))
    if not outcome.finished:
        return None
    return (FinishedReason.SUCCEEDED if outcome.success else FinishedReason.FAILED), outcome.message
