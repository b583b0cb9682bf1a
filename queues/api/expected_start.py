"""When a waiting workload is expected to start: the newest estimate of the studio, as the API shows it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from django.db.models import F
from rest_framework import serializers

from accounts.models import MIRRORED_MODES
from scheduling.model.vocabulary import WorkloadStatus

OUTDATED_AFTER: Final = timedelta(minutes=10)
"""Estimates are renewed each minute. An older one than this is not shown any more."""

_PREFIX: Final = "estimate_"
_FROM_ESTIMATE: Final = ("made_at", "p10_at", "p50_at", "p90_at", "unknown", "compared")
EXPECTED_COLUMNS: Final = {f"{_PREFIX}{name}": F(f"start_estimate__{name}") for name in _FROM_ESTIMATE} | {
    f"{_PREFIX}mode": F("cluster__mode")
}
"""Columns of a query of workloads, for `expected_start_json`: they join the estimates."""


class NoEstimate(StrEnum):
    """Why there is no estimate."""

    NOT_QUEUED = "NotQueued"
    """It is held by its user."""
    DECIDED_ELSEWHERE = "DecidedElsewhere"
    """Another scheduler runs the cluster; kueueweb cannot predict its admissions."""
    NOT_ESTIMATED = "NotEstimated"
    """No studio has estimated it: it was queued just now, its queue admits nothing, or no studio runs."""
    OUTDATED = "Outdated"
    """The last estimate is older than ten minutes."""
    NO_RUN_ENDED = "NoRunEnded"
    """Too few workloads have ended to estimate run times."""
    NO_START_FORESEEN = "NoStartForeseen"
    """It does not start in forward runs, in which the running workloads end."""
    BEYOND_REACH = "BeyondReach"
    """It starts later than the forward runs reach in their time."""


_SENTENCES: Final = {
    NoEstimate.NOT_QUEUED: "The workload is on hold.",
    NoEstimate.DECIDED_ELSEWHERE: "Another scheduler decides in this cluster.",
    NoEstimate.NOT_ESTIMATED: "No studio has estimated it: it was queued less than a minute ago, its queue admits "
    "nothing, or no studio runs.",
    NoEstimate.OUTDATED: "The last estimate is older than ten minutes: no studio renews it.",
    NoEstimate.NO_RUN_ENDED: "Too few workloads have ended to estimate run times.",
    NoEstimate.NO_START_FORESEEN: "It does not start in forward runs, in which the running workloads end.",
    NoEstimate.BEYOND_REACH: "It starts later than the forward runs reach.",
}


class ExpectedStartSerializer(serializers.Serializer[Any]):
    """When a waiting workload may start: an interval, not a promise."""

    p10_at = serializers.DateTimeField(
        allow_null=True, help_text="One of ten such workloads starts earlier. Null without an estimate."
    )
    p50_at = serializers.DateTimeField(allow_null=True, help_text="The most probable time.")
    p90_at = serializers.DateTimeField(allow_null=True, help_text="One of ten such workloads starts later.")
    made_at = serializers.DateTimeField(allow_null=True, help_text="When it was estimated.")
    reason = serializers.ChoiceField(
        choices=[reason.value for reason in NoEstimate], allow_blank=True, help_text="Why there is no estimate."
    )
    message = serializers.CharField(allow_blank=True, help_text="The reason as a sentence.")
    compared = serializers.IntegerField(
        help_text=(
            "The number of past estimates whose outcomes corrected the interval; 0: none are known, so it is wide."
        )
    )


def take_expected_start(row: Any, now: datetime) -> dict[str, Any] | None:
    """Remove EXPECTED_COLUMNS from a workload's row, and return its `expected_start`; None if the workload does not
    wait."""
    found = {name: row.pop(f"{_PREFIX}{name}") for name in (*_FROM_ESTIMATE, "mode")}
    if row["status"] == WorkloadStatus.FINISHED or row["quota_reserved_at"] is not None:
        return None
    reason = _reason(found, now, active=row["active"])
    if reason is not None:
        return dict.fromkeys(("p10_at", "p50_at", "p90_at")) | {
            "made_at": found["made_at"],
            "reason": reason.value,
            "message": _SENTENCES[reason],
            "compared": 0,
        }
    quantiles = {name: found[name] for name in ("p10_at", "p50_at", "p90_at", "made_at", "compared")}
    return quantiles | {"reason": "", "message": ""}


def _reason(found: Mapping[str, Any], now: datetime, *, active: bool) -> NoEstimate | None:
    if found["mode"] in MIRRORED_MODES:
        return NoEstimate.DECIDED_ELSEWHERE
    if not active:
        return NoEstimate.NOT_QUEUED
    if found["made_at"] is None:
        return NoEstimate.NOT_ESTIMATED
    if now - found["made_at"] > OUTDATED_AFTER:
        return NoEstimate.OUTDATED
    return NoEstimate(found["unknown"]) if found["unknown"] else None
