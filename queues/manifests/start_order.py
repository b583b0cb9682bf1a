"""`kueueweb.io/start-after` of jobs and workloads: the jobs that must have succeeded before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from queues.manifests import kueue_keys as keys
from scheduling.manifest import FieldReader, MistakeReason, ObjectMeta
from scheduling.manifest.syntax import dns_subdomain

MAX_JOBS: Final = 64


def jobs_before(annotations: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the jobs in the annotation, which is a list with commas; () without one."""
    return tuple(name.strip() for name in annotations.get(keys.START_AFTER, "").split(",") if name.strip())


def check_start_after(top: FieldReader, meta: ObjectMeta) -> None:
    """Report the mistakes in the annotation."""
    text = meta.annotations.get(keys.START_AFTER)
    if text is None:
        return
    place, names = top.at(f"metadata.annotations[{keys.START_AFTER}]"), jobs_before(meta.annotations)
    if not names:
        top.report.error(place, text, "Required value", "Name jobs of the namespace.", MistakeReason.REQUIRED)
    if len(names) > MAX_JOBS:
        top.report.error(place, text, f"must name at most {MAX_JOBS} jobs", "", MistakeReason.TOO_MANY)
    for number, name in enumerate(names):
        if broken := dns_subdomain(name):
            top.report.error(place, name, broken)
        elif name in names[:number]:
            top.report.error(place, name, "Duplicate value", "Name each job once.", MistakeReason.DUPLICATE)
        elif name == meta.name:
            top.report.error(place, name, "must not name the job itself", "Name other jobs.")
