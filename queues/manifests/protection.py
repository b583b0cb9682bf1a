"""`kueueweb.io/never-preempt` of jobs and workloads: an annotation in a manifest, a column in a row."""

from dataclasses import replace
from typing import Final

from scheduling.manifest import FieldReader, ObjectMeta

NEVER_PREEMPT: Final = "kueueweb.io/never-preempt"


def read_never_preempt(top: FieldReader, meta: ObjectMeta) -> bool:
    """Read the annotation, which is "true" or "false"; the default is false."""
    value = meta.annotations.get(NEVER_PREEMPT, "false")
    if value not in ("true", "false"):
        top.report.error(top.at(f"metadata.annotations[{NEVER_PREEMPT}]"), value, 'must be "true" or "false"')
    return value == "true"


def without_never_preempt(meta: ObjectMeta) -> ObjectMeta:
    """Return the metadata without the annotation that a column stores, so that the value is stored only once."""
    kept = {key: text for key, text in meta.annotations.items() if key != NEVER_PREEMPT}
    return replace(meta, annotations=kept)


def with_never_preempt(meta: ObjectMeta, never_preempt: bool) -> ObjectMeta:
    """Return the metadata with the annotation for the column's value."""
    return replace(meta, annotations={**meta.annotations, NEVER_PREEMPT: "true"}) if never_preempt else meta
