"""The rows of history, one noun family per file."""

from history.models.checkpoint import Checkpoint
from history.models.price import Price
from history.models.row_change import RowChange
from history.models.series import Count, CountSample, DeviceSample, QuotaSample, Scope, Subject, WorkloadSample
from history.models.usage import UsageRecord

__all__ = [
    "Checkpoint",
    "Count",
    "CountSample",
    "DeviceSample",
    "Price",
    "QuotaSample",
    "RowChange",
    "Scope",
    "Subject",
    "UsageRecord",
    "WorkloadSample",
]
