"""Slurm's tables: states, elapsed times, and the formats of squeue(1), sinfo(1), sacct(1) and sprio(1)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from kueueweb_client.errors import ClientError

Row = Mapping[str, Any]
Cell = Callable[[Row], str]
_STATES: Final = {
    "Pending": ("PD", "PENDING"),
    "QuotaReserved": ("CF", "CONFIGURING"),
    "Admitted": ("R", "RUNNING"),
    "Evicted": ("RQ", "REQUEUED"),
}
_JOB_GATE: Final = "job.kueueweb.io/"
"""The gates of a job that starts after others begin with it, in the message of a gated workload."""
_FIELD: Final = re.compile(r"%(?P<right>\.?)(?P<size>\d*)(?P<type>[A-Za-z])")


def state(row: Row) -> tuple[str, str]:
    """Return the short and the long state of a workload's row."""
    if row["status"] != "Finished":
        return _STATES[row["status"]]
    if row["reason"] == "Succeeded":
        return "CD", "COMPLETED"
    return ("CA", "CANCELLED") if row["reason"] == "Cancelled" else ("F", "FAILED")


def statuses(text: str) -> str:
    """Translate Slurm's states, short or long, separated by commas, to REST's filter `status`; "" means all. Raises
    `ClientError`."""
    known = {word: status for status, words in _STATES.items() for word in words}
    known |= dict.fromkeys(("CD", "COMPLETED", "F", "FAILED", "CA", "CANCELLED"), "Finished")
    asked = [word.strip().upper() for word in text.split(",") if word.strip()]
    if "ALL" in asked:
        return ""
    if unknown := [word for word in asked if word not in known]:
        raise ClientError(f'Unsupported value: "{unknown[0]}": supported states: {", ".join(known)}, all')
    return ",".join(dict.fromkeys(known[word] for word in asked))


def is_in(row: Row, text: str) -> bool:
    """Return whether a row is in one of Slurm's states. Several of these are one status of REST."""
    asked = {word.strip().upper() for word in text.split(",") if word.strip()}
    return not asked or "ALL" in asked or bool(asked & set(state(row)))


def elapsed(row: Row, now: datetime | None = None) -> int:
    """Return the seconds that a workload has run."""
    if not row["admitted_at"] or row["status"] in ("Pending", "QuotaReserved", "Evicted"):
        return 0
    end = datetime.fromisoformat(row["finished_at"]) if row["finished_at"] else now or datetime.now(UTC)
    return max(0, int((end - datetime.fromisoformat(row["admitted_at"])).total_seconds()))


def clock(seconds: int, *, padded: bool = False) -> str:
    """Write a length of time: squeue's M:SS, H:MM:SS, D-HH:MM:SS, or sacct's HH:MM:SS."""
    days, rest = divmod(seconds, 86400)
    hours, minutes, left = rest // 3600, rest % 3600 // 60, rest % 60
    if days:
        return f"{days}-{hours:02}:{minutes:02}:{left:02}"
    if padded:
        return f"{hours:02}:{minutes:02}:{left:02}"
    return f"{hours}:{minutes:02}:{left:02}" if hours else f"{minutes}:{left:02}"


def moment(text: str | None) -> str:
    """Write a time as Slurm does."""
    return text[:19] if text else "Unknown"


def job_name(row: Row) -> str:
    """Return the name of the workload's job, else its own."""
    return str((row.get("owner") or {}).get("name") or row["name"])


def pods(row: Row) -> int:
    """Return the number of pods of a workload, because there is no number of nodes before it is placed."""
    return sum(int(pod_set["count"]) for pod_set in row["pod_sets"])


def amount(row: Row, resource: str) -> str:
    """Return the requested units of a resource, as a whole number."""
    total = 0.0
    for pod_set in row["pod_sets"]:
        found = re.match(r"([\d.]+)(m?)", str(pod_set["requests"].get(resource, "0")))
        if found:
            total += float(found[1]) * (0.001 if found[2] else 1) * pod_set["count"]
    return f"{total:g}"


def rounded(factor: float) -> str:
    """Round a weighted factor to the nearest whole number, as sprio does."""
    return str(round(factor))


def resources(weighted: Mapping[str, float]) -> str:
    """Return the weighted factors of resources: cpu=120,gres/gpu=40."""
    names = {name: f"gres/{name.rpartition('/')[2]}" if "/" in name else name for name in weighted}
    return ",".join(f"{names[name]}={round(factor)}" for name, factor in sorted(weighted.items()))


def why(row: Row) -> str:
    """Return the reason, in parentheses, why a workload waits."""
    if not row["active"]:
        return "(JobHeldUser)"
    if state(row)[0] in ("R", "CD", "F", "CA"):
        return ""
    if row["reason"] == "AdmissionGated" and _JOB_GATE in row["message"]:
        return "(Dependency)"
    return f"({row['reason'] or 'None'})"


def read_format(text: str, known: Mapping[str, tuple[str, Cell]]) -> list[tuple[str, str, int, bool]]:
    """Parse `%.18i %.9P` into (text before, type, width, right). Raises `ClientError` for an unknown type."""
    found, position = [], 0
    for field in _FIELD.finditer(text):
        if field["type"] not in known:
            types = ", ".join(f"%{each}" for each in known)
            raise ClientError(f'Unsupported value: "%{field["type"]}": supported fields: {types}')
        found.append((text[position : field.start()], field["type"], int(field["size"] or 0), bool(field["right"])))
        position = field.end()
    if not found:
        raise ClientError(f'Invalid value: "{text}" has no field like %.18i')
    return found


def line(fields: Sequence[tuple[str, str, int, bool]], cell: Callable[[str], str]) -> str:
    """Write a line of a format; a value that is longer than its field is cut, as in Slurm."""
    parts = []
    for before, name, width, right in fields:
        value = cell(name)
        value = value[:width] if width else value
        parts.append(before + (value.rjust(width) if right else value.ljust(width)))
    return "".join(parts).rstrip()


def node_list(names: Sequence[str]) -> str:
    """Names as a host list: gpu-[1-3,7],login."""
    groups: dict[str, list[str]] = {}
    for name in sorted(names):
        found = re.fullmatch(r"(.*?)(\d+)", name)
        groups.setdefault(found[1] if found else name, []).append(found[2] if found else "")
    return ",".join(
        prefix + (numbers[0] if len(numbers) == 1 else f"[{_ranges(numbers)}]") for prefix, numbers in groups.items()
    )


def _ranges(numbers: Sequence[str]) -> str:
    runs: list[list[str]] = []
    for number in sorted(numbers, key=lambda each: (len(each), int(each or 0))):
        if runs and len(runs[-1][-1]) == len(number) and int(number or 0) == int(runs[-1][-1] or 0) + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
