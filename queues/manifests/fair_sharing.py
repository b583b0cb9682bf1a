"""`fairSharing.weight`, the same in ClusterQueues, Cohorts and LocalQueues."""

from decimal import Decimal
from typing import Any, Final

from scheduling.manifest import Fields
from scheduling.model.quantity import NANOS

DEFAULT_WEIGHT: Final = Decimal(1)
_SMALLEST_NANOS: Final = 1
_MAX_WEIGHT: Final = 10**12


def read_weight(spec: Fields) -> Decimal:
    """The weight: at least 0, and either 0 or above 1e-9."""
    fields = spec.fields("fairSharing")
    if fields is None:
        return DEFAULT_WEIGHT
    nanos = fields.quantity("weight")
    fields.close()
    if nanos is None:
        return DEFAULT_WEIGHT
    if 0 < nanos <= _SMALLEST_NANOS:
        fields.error("weight", "must be 0 or above 1e-9", "Scale all weights up: only their ratios count.")
    if nanos > _MAX_WEIGHT * NANOS:
        fields.error("weight", f"must be at most {_MAX_WEIGHT:g}", "Scale all weights down: only their ratios count.")
        return DEFAULT_WEIGHT
    return Decimal(nanos) / NANOS


def write_weight(weight: Decimal) -> dict[str, Any]:
    """`{"fairSharing": {"weight": ...}}`, or nothing for the default."""
    if weight == DEFAULT_WEIGHT:
        return {}
    nanos = int(weight * NANOS)
    if nanos % NANOS == 0:
        return {"fairSharing": {"weight": str(nanos // NANOS)}}
    if nanos % 10**6 == 0:
        return {"fairSharing": {"weight": f"{nanos // 10**6}m"}}
    return {"fairSharing": {"weight": f"{nanos}n"}}
