"""`kueueweb.io/start-after` of jobs and workloads: the jobs that must have succeeded, ended or started before.

The conditions have the words of sbatch(1): `NAME` must have succeeded, `afterany:NAME` must have ended, well or not,
and `after:NAME` must have started.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from queues.manifests import kueue_keys as keys
from scheduling.manifest import FieldReader, MistakeReason, ObjectMeta
from scheduling.manifest.syntax import dns_subdomain

MAX_JOBS: Final = 64
ENDED: Final = "afterany"
STARTED: Final = "after"


def jobs_before(annotations: Mapping[str, str]) -> tuple[str, ...]:
    """Return the jobs in the annotation, which is a list with commas, with their conditions; () without one."""
    return tuple(name.strip() for name in annotations.get(keys.START_AFTER, "").split(",") if name.strip())


def job_named(item: str) -> str:
    """Return the name of the job in an item of the list."""
    return item.rpartition(":")[2]


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
    for number, item in enumerate(names):
        condition, colon, name = item.rpartition(":")
        if colon and condition not in (ENDED, STARTED):
            rule = f'Unsupported value: "{condition}": supported conditions are {ENDED}, {STARTED}'
            remedy = "Name the job alone if it must have succeeded."
            top.report.error(place, item, rule, remedy, MistakeReason.NOT_SUPPORTED)
        elif broken := dns_subdomain(name):
            top.report.error(place, item, broken)
        elif item in names[:number]:
            top.report.error(place, item, "Duplicate value", "Name each job once.", MistakeReason.DUPLICATE)
        elif name == meta.name:
            top.report.error(place, item, "must not name the job itself", "Name other jobs.")
