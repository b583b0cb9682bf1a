"""The result of one check, and how results are printed. Imports no settings: they may be the fault."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum

_OK_SKEW_SECONDS = 5.0
_MAX_SKEW_SECONDS = 300.0


class Status(StrEnum):
    """How a check ended. Only with `FAIL` is the exit code 1."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line: the check's stable name, its result, the observation, and the remedy unless it is ok."""

    check: str
    status: Status
    message: str
    remedy: str = ""


def ok(check: str, message: str) -> Finding:
    return Finding(check, Status.OK, message)


def warn(check: str, message: str, remedy: str) -> Finding:
    return Finding(check, Status.WARN, message, remedy)


def fail(check: str, message: str, remedy: str) -> Finding:
    return Finding(check, Status.FAIL, message, remedy)


def clock(check: str, theirs: datetime, ours: datetime, precision_seconds: float = 0.0) -> Finding:
    """Compare the clock of another machine with this process's clock. Up to 5 s is fine, above 300 s logins fail.

    * precision_seconds: the maximum error of the measurement, such as the duration of a request.
    """
    ahead = (theirs - ours).total_seconds()
    skew = max(0.0, abs(ahead) - precision_seconds)
    if skew <= _OK_SKEW_SECONDS:
        return ok(check, f"{skew:.1f} s from this process")
    said = f"{skew:.0f} s {'ahead of' if ahead > 0 else 'behind'} this process"
    remedy = "Synchronize the machines' clocks (NTP, chrony)."
    return (fail if skew > _MAX_SKEW_SECONDS else warn)(check, said, remedy)


def worst(findings: Iterable[Finding]) -> Status:
    found = {each.status for each in findings}
    return next((status for status in (Status.FAIL, Status.WARN) if status in found), Status.OK)


def as_lines(findings: Sequence[Finding]) -> str:
    """Return one line for each finding, and a last line that counts them."""
    width = max((len(each.check) for each in findings), default=0)
    lines = [
        f"{each.status:<4}  {each.check:<{width}}  {_one_line(each.message)}"
        + (f"  -> {_one_line(each.remedy)}" if each.remedy else "")
        for each in findings
    ]
    counts = ", ".join(f"{sum(each.status == status for each in findings)} {status}" for status in Status)
    return "\n".join([*lines, counts])


def as_json(findings: Sequence[Finding]) -> str:
    """{"status": ok|warn|fail, "checks": [{check, status, message, remedy}]}."""
    return json.dumps({"status": worst(findings), "checks": [asdict(each) for each in findings]}, indent=2)


def _one_line(text: str) -> str:
    return " ".join(text.split())
