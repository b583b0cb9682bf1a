"""LocalQueue: a namespace's access to a ClusterQueue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduling.model.vocabulary import StopPolicy


@dataclass(frozen=True, slots=True)
class LocalQueue:
    """Kueue's LocalQueue. `fair_weight` is used by admission fair sharing only.

    `consumed` is the stored decayed usage of admission fair sharing (resource -> natural units), and `consumed_at`
    its time; None if none was stored.
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
