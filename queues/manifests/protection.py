"""What ClusterQueues, Cohorts and workloads may ask for beyond Kueue: annotations in a manifest, columns in a row."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from scheduling.manifest import Fields, ObjectMeta

PREEMPT_FOR_DEVICES: Final = "kueueweb.io/preempt-for-devices"
MINIMUM_RUN_SECONDS: Final = "kueueweb.io/minimum-run-seconds"
COOL_DOWN_SECONDS: Final = "kueueweb.io/preemption-cool-down-seconds"
NEVER_PREEMPT: Final = "kueueweb.io/never-preempt"

_PROTECTION: Final = {MINIMUM_RUN_SECONDS: "minimum_run_seconds", COOL_DOWN_SECONDS: "cool_down_seconds"}


def read_protection(top: Fields, meta: ObjectMeta) -> dict[str, int]:
    """`preemption_protection` from the annotations."""
    return {
        column: seconds
        for annotation, column in _PROTECTION.items()
        if (seconds := _read_seconds(top, meta, annotation)) is not None
    }


def read_flag(top: Fields, meta: ObjectMeta, annotation: str) -> bool:
    """An annotation that is "true" or "false"; left out means false."""
    value = meta.annotations.get(annotation, "false")
    if value not in ("true", "false"):
        top.report.error(top.at(f"metadata.annotations[{annotation}]"), value, 'must be "true" or "false"')
    return value == "true"


def without_columns(meta: ObjectMeta) -> ObjectMeta:
    """The metadata without the annotations that columns hold, so that only one place says it."""
    columns = {PREEMPT_FOR_DEVICES, NEVER_PREEMPT, *_PROTECTION}
    if not columns & meta.annotations.keys():
        return meta
    return replace(meta, annotations={key: text for key, text in meta.annotations.items() if key not in columns})


def write_columns(
    meta: ObjectMeta,
    *,
    protection: Mapping[str, Any] | None = None,
    preempt_for_devices: bool = False,
    never_preempt: bool = False,
) -> ObjectMeta:
    """The metadata with the annotations that say what the columns hold."""
    added = {
        annotation: str(protection[column])
        for annotation, column in _PROTECTION.items()
        if protection and protection.get(column) is not None
    }
    if preempt_for_devices:
        added[PREEMPT_FOR_DEVICES] = "true"
    if never_preempt:
        added[NEVER_PREEMPT] = "true"
    return replace(meta, annotations={**meta.annotations, **added}) if added else meta


def _read_seconds(top: Fields, meta: ObjectMeta, annotation: str) -> int | None:
    text = meta.annotations.get(annotation)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()):
        top.report.error(
            top.at(f"metadata.annotations[{annotation}]"), text, "must be a whole number of seconds, in quotes"
        )
        return None
    return int(text)
