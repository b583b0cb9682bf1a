"""LocalQueue: the door of a namespace to a ClusterQueue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduling.model.vocabulary import StopPolicy


@dataclass(frozen=True, slots=True)
class LocalQueue:
    """Kueue's LocalQueue. `fair_weight` matters for admission fair sharing only.

    `consumed` is the decayed usage of admission fair sharing as it was last stored (resource -> natural units) and
    `consumed_at` when; None where none was stored.
    """

    namespace: str
    name: str
    cluster_queue: str
    stop_policy: StopPolicy = StopPolicy.NONE
    fair_weight: float = 1.0
    consumed: Mapping[str, float] = field(default_factory=dict)
    consumed_at: float | None = None
    terminating: bool = False

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"
