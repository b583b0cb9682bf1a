"""Reads the jobs of a trace: a pod list of the openb trace, or the output of `sacct --parsable2`."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from kueueweb.openb_trace import UnreadableTrace
from scheduling.simulator.trace_job import TraceJob

GPU: Final = "nvidia.com/gpu"
_CORES: Final = "nvidia.com/gpucores"
_MEMORY_PERCENTAGE: Final = "nvidia.com/gpumem-percentage"
_WHOLE_MILLI: Final = 1000
_OPENB: Final = frozenset({"num_gpu", "gpu_milli", "creation_time", "deletion_time", "scheduled_time"})
_SACCT: Final = ("JobID", "Submit", "Elapsed")
_UNIX: Final = re.compile(r"[0-9]+")
_ELAPSED: Final = re.compile(r"(?:([0-9]+)-)?(?:([0-9]+):)?([0-9]+):([0-9]+)(?:\.[0-9]+)?")
_MEMORY: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)([KMGTP]?)")
_SUFFIXES: Final = {"": "Mi", "K": "Ki", "M": "Mi", "G": "Gi", "T": "Ti", "P": "Pi"}

Row = Mapping[str, str]


def read_jobs(lines: Sequence[str]) -> list[TraceJob]:
    """Return the jobs of a trace in the order of submission; its first line tells the format. Raises
    UnreadableTrace."""
    header = lines[0].strip() if lines else ""
    if "|" in header:
        return in_order(_of_sacct(csv.DictReader(lines, delimiter="|", quoting=csv.QUOTE_NONE)))
    if set(header.split(",")) >= _OPENB:
        return in_order(_of_openb(csv.DictReader(lines)))
    raise UnreadableTrace(
        f'line 1: Unsupported value "{header[:80]}": supported formats: a pod list of openb, sacct --parsable2'
    )


def in_order(jobs: Iterable[TraceJob]) -> list[TraceJob]:
    """Return the jobs in the order of submission, with times from the first one and unique names."""
    ordered = sorted(jobs, key=lambda job: (job.submitted_at, job.name))
    first = ordered[0].submitted_at if ordered else 0.0
    seen: set[str] = set()
    found = []
    for number, job in enumerate(ordered):
        name = job.name if job.name not in seen else f"{job.name}-{number}"
        seen.add(name)
        found.append(replace(job, name=name, submitted_at=job.submitted_at - first))
    return found


def _of_openb(rows: csv.DictReader[str]) -> Iterator[TraceJob]:
    """Pods that were scheduled. Each is a job of the LocalQueue that has the name of its quality of service."""
    for row in rows:
        if not row["scheduled_time"]:
            continue
        line = rows.line_num
        devices, milli = _integer(row, "num_gpu", line), _integer(row, "gpu_milli", line)
        created, scheduled = _integer(row, "creation_time", line), _integer(row, "scheduled_time", line)
        seconds = _integer(row, "deletion_time", line) - scheduled
        if seconds < 0:
            raise UnreadableTrace(f"line {line}: deletion_time: Invalid value: must not be before scheduled_time")
        requests = {"cpu": f"{row['cpu_milli']}m", "memory": f"{row['memory_mib']}Mi"}
        if devices:
            requests[GPU] = str(devices)
            if milli < _WHOLE_MILLI:
                requests |= {_CORES: str(milli // 10), _MEMORY_PERCENTAGE: str(max(1, milli // 10))}
        part = min(milli, _WHOLE_MILLI) / _WHOLE_MILLI
        yield TraceJob(row["name"], "trace", row["qos"].lower(), created, seconds, 1, devices * part, requests)


def _of_sacct(rows: csv.DictReader[str]) -> Iterator[TraceJob]:
    """Jobs without their steps. The account is the namespace, the partition the LocalQueue."""
    missing = [column for column in _SACCT if column not in (rows.fieldnames or ())]
    if missing:
        raise UnreadableTrace(f"line 1: Required value: column {missing[0]}")
    for row in rows:
        if "." in row["JobID"] or not row["Elapsed"] or not row["Submit"]:
            continue
        seconds = _elapsed(row, rows.line_num)
        if not seconds:
            continue  # never ran
        resources = _tres(row.get("AllocTRES") or row.get("ReqTRES") or "")
        pods = max(1, int(resources.get("node") or row.get("NNodes") or row.get("AllocNodes") or 1))
        devices = _gpus(resources)
        pods = pods if devices % pods == 0 else 1
        requests = {"cpu": str(int(resources.get("cpu") or row.get("AllocCPUS") or 1) / pods)}
        if "mem" in resources:
            requests["memory"] = _memory(resources["mem"], pods, rows.line_num)
        if devices:
            requests[GPU] = str(devices // pods)
        yield TraceJob(
            f"job-{re.sub('[^a-z0-9]+', '-', row['JobID'].lower()).strip('-')}",
            (row.get("Account") or "trace").lower(),
            (row.get("Partition") or "").split(",")[0].lower(),
            _moment(row, "Submit", rows.line_num),
            seconds,
            pods,
            devices,
            requests,
        )


def _integer(row: Row, column: str, line: int) -> int:
    try:
        return int(row[column] or 0)
    except ValueError:
        raise UnreadableTrace(f'line {line}: {column}: Invalid value: "{row[column]}": must be an integer') from None


def _moment(row: Row, column: str, line: int) -> float:
    text = row[column]
    if _UNIX.fullmatch(text):
        return float(text)
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    except ValueError:
        rule = "must be a time, such as 2026-01-05T09:00:00"
        raise UnreadableTrace(f'line {line}: {column}: Invalid value: "{text}": {rule}') from None


def _elapsed(row: Row, line: int) -> float:
    found = _ELAPSED.fullmatch(row["Elapsed"])
    if found is None:
        rule = "must be [days-][hours:]minutes:seconds"
        raise UnreadableTrace(f'line {line}: Elapsed: Invalid value: "{row["Elapsed"]}": {rule}')
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60.0 + seconds


def _tres(text: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in text.split(",") if "=" in part)


def _gpus(resources: Mapping[str, str]) -> int:
    """Return the GPUs of all types: a site that accounts types alone has no `gres/gpu`, but `gres/gpu:a100`."""
    whole = resources.get("gres/gpu")
    of_types = [int(count) for name, count in resources.items() if name.startswith("gres/gpu:")]
    return int(whole) if whole else sum(of_types)


def _memory(text: str, pods: int, line: int) -> str:
    found = _MEMORY.fullmatch(text)
    if found is None:
        raise UnreadableTrace(
            f'line {line}: AllocTRES: Invalid value: "mem={text}": must be a number with K, M, G, T or P'
        )
    amount = float(found[1]) / pods
    return f"{amount:.3f}{_SUFFIXES[found[2]]}"
