"""LocalQueue: a namespace's access to a ClusterQueue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from scheduling.model.vocabulary import StopPolicy


@dataclass(frozen=True, slots=True)
class LocalQueue:
    """Kueue's LocalQueue. `fair_weight` is used by admission fair sharing, and as the shares of Slurm's Fair Tree.

    `consumed` is the stored decayed usage of admission fair sharing (resource -> natural units), and `consumed_at` its
    time; None if none was stored. `past_use` is its decayed use by the records of use (resource -> seconds of one core,
    GiB or other unit), from which the fair shares of multifactor priorities are computed.
    """

    namespace: str
    name: str
    cluster_queue: str
    stop_policy: StopPolicy = StopPolicy.NONE
    fair_weight: float = 1.0
    consumed: Mapping[str, float] = field(default_factory=dict)
    consumed_at: float | None = None
    terminating: bool = False
    past_use: Mapping[str, float] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    def differs_in_past_use_only(self, other: LocalQueue | None) -> bool:
        """Return whether the past use is the only difference. If so, no workload is affected before the next
        ordering."""
        return other is not None and self != other and replace(self, past_use=other.past_use) == other
