"""Reads a pod list in the format of Alibaba's openb trace (cluster-trace-gpu-v2023), for the replay of its queue."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from scheduling.estimates.trace_replay import TracePod

_DAY_SECONDS: Final = 86_400
_SHAPE: Final = ("cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "qos")
_COLUMNS: Final = (*_SHAPE, "name", "creation_time", "deletion_time", "scheduled_time")
_MAX_OVERSTATED: Final = 3.0


class UnreadableTrace(ValueError):
    """A trace that is not in the format. The text names line, column and value."""


def read_trace(lines: Iterable[str], first_day: int, last_day: int) -> list[TracePod]:
    """Return the pods with GPUs that were created on these days and were scheduled, in the order of creation.

    A pod runs for deletion_time - scheduled_time. Similar pods have the same requests and quality of service; if there
    are too few, the same number of GPUs and quality of service; then any pods. Raises UnreadableTrace.
    """
    rows = csv.DictReader(lines)
    missing = [column for column in _COLUMNS if column not in (rows.fieldnames or ())]
    if missing:
        raise UnreadableTrace(f"line 1: Required value: column {missing[0]}")
    begin, end = first_day * _DAY_SECONDS, (last_day + 1) * _DAY_SECONDS
    pods = [pod for pod in _pods(rows) if begin <= pod.created_at < end]
    return sorted(pods, key=lambda pod: (pod.created_at, pod.name))


def declare_times(pods: Iterable[TracePod], seed: int) -> list[TracePod]:
    """Return the pods with declared times: the true ones, times 1 to 3 at random."""
    random = np.random.default_rng(seed)
    return [replace(pod, declared_seconds=pod.run_seconds * random.uniform(1.0, _MAX_OVERSTATED)) for pod in pods]


def _pods(rows: csv.DictReader[str]) -> Iterator[TracePod]:
    for row in rows:
        devices = _integer(row, "num_gpu", rows.line_num)
        if devices == 0 or not row["scheduled_time"]:
            continue
        scheduled, deleted = (_integer(row, column, rows.line_num) for column in ("scheduled_time", "deletion_time"))
        if deleted < scheduled:
            raise UnreadableTrace(
                f"line {rows.line_num}: deletion_time: Invalid value: {deleted}: must not be before scheduled_time"
            )
        shape = tuple(row[column] for column in _SHAPE)
        levels = (("shape", *shape), ("class", row["num_gpu"], row["qos"]), "all")
        created = _integer(row, "creation_time", rows.line_num)
        yield TracePod(row["name"], created, deleted - scheduled, devices, levels)


def _integer(row: Mapping[str, str], column: str, line: int) -> int:
    try:
        value = int(row[column])
    except (TypeError, ValueError):
        raise UnreadableTrace(f'line {line}: {column}: Invalid value: "{row[column]}": must be an integer') from None
    if value < 0:
        raise UnreadableTrace(f"line {line}: {column}: Invalid value: {value}: must not be negative")
    return value
