"""Admission fair sharing: LocalQueues of one ClusterQueue are ordered by their decayed past usage.

Amounts are kept in nano units per resource (natural units: cores, bytes), so that every product is truncated at nine
fractional digits, as in Kueue.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from scheduling.model.configuration import AdmissionFairSharing
from scheduling.model.local_queue import LocalQueue
from scheduling.model.quantity import NANOS, to_nanos
from scheduling.state.workload_info import WorkloadInfo

Nanos = dict[str, int]


class QueueHistory:
    """The usage history of one LocalQueue: its decayed consumption, the time of the last sample, and the penalties of
    workloads that hold quota but are not admitted yet."""

    __slots__ = ("consumed", "penalties", "sampled_at", "weight")

    def __init__(self, weight: float) -> None:
        self.weight = weight
        self.consumed: Nanos = {}
        self.sampled_at: float | None = None
        self.penalties: dict[str, Nanos] = {}

    def usage(self, weights: Mapping[str, float]) -> float:
        """Return the value that orders LocalQueues: weighted consumption and penalties over the queue's weight; a queue
        of weight 0 comes last even when it consumed nothing (T65)."""
        return self.weighted(weights) / self.weight if self.weight > 0 else math.inf

    def weighted(self, weights: Mapping[str, float]) -> float:
        """Weighted consumption and penalties."""
        total = 0.0
        for amounts in (self.consumed, *self.penalties.values()):
            total += sum(weights.get(name, 1.0) * amount / NANOS for name, amount in amounts.items())
        return total


class UsageHistory:
    """The usage histories of all LocalQueues, which `snapshot` copies and `restore` puts back."""

    def __init__(self, settings: AdmissionFairSharing) -> None:
        self._settings = settings
        self._queues: dict[str, QueueHistory] = {}

    def set_local_queue(self, queue: LocalQueue) -> None:
        """Set a LocalQueue's weight. Its stored consumption is used only where none is known yet."""
        known = self._queues.get(queue.key)
        if known is None:
            known = self._queues[queue.key] = QueueHistory(queue.fair_weight)
            known.consumed = {name: int(amount * NANOS) for name, amount in queue.consumed.items()}
            known.sampled_at = queue.consumed_at
        known.weight = queue.fair_weight

    def delete_local_queue(self, key: str) -> None:
        self._queues.pop(key, None)

    def usage(self, queue_key: str) -> float:
        """Return the value that orders the LocalQueue; 0 for an unknown one."""
        history = self._queues.get(queue_key)
        return history.usage(self._settings.resource_weights) if history is not None else 0.0

    def weighted(self, queue_key: str) -> float:
        """Return the decayed usage of the LocalQueue in one number, not divided by its weight; 0 for an unknown one."""
        history = self._queues.get(queue_key)
        return history.weighted(self._settings.resource_weights) if history is not None else 0.0

    def consumed(self, queue_key: str) -> dict[str, float]:
        """Return the decayed consumption per resource in natural units."""
        history = self._queues.get(queue_key)
        return {name: amount / NANOS for name, amount in history.consumed.items()} if history is not None else {}

    def snapshot(self) -> dict[str, tuple[QueueHistory, float, Nanos, float | None, dict[str, Nanos]]]:
        """Return a copy of everything that decisions, samples and LocalQueues change."""
        return {
            key: (history, history.weight, dict(history.consumed), history.sampled_at, dict(history.penalties))
            for key, history in self._queues.items()
        }

    def restore(
        self, snapshot: Mapping[str, tuple[QueueHistory, float, Nanos, float | None, dict[str, Nanos]]]
    ) -> None:
        """Go back to a snapshot."""
        self._queues = {key: values[0] for key, values in snapshot.items()}
        for history, weight, consumed, sampled_at, penalties in snapshot.values():
            history.weight, history.consumed = weight, consumed
            history.sampled_at, history.penalties = sampled_at, penalties

    def charge_entry(self, info: WorkloadInfo) -> None:
        """Charge a workload that was given quota. Its whole request counts immediately, with the weight of one sampling
        interval, until a sample finds the workload running. The penalty of an admitted workload becomes consumption."""
        history = self._queues.get(info.queue_key)
        if history is None:
            return
        fresh = self._decay(self._settings.usage_sampling_interval_seconds)
        penalty = {name: int(amount * fresh) for name, amount in total_requests(info).items()}
        if info.admitted:
            _add(history.consumed, penalty)
        else:
            history.penalties[info.key] = penalty

    def admit(self, info: WorkloadInfo) -> None:
        """Turn the penalty of a workload into consumption, because it is now admitted."""
        history = self._queues.get(info.queue_key)
        penalty = history.penalties.pop(info.key, None) if history is not None else None
        if history is not None and penalty is not None:
            _add(history.consumed, penalty)

    def cancel(self, info: WorkloadInfo) -> None:
        """Drop the penalty of a workload that lost its quota before it was admitted."""
        history = self._queues.get(info.queue_key)
        if history is not None:
            history.penalties.pop(info.key, None)

    def sample(self, running: Mapping[str, Iterable[WorkloadInfo]], now: float) -> tuple[str, ...]:
        """Decay the consumption of LocalQueues whose sampling interval is over, towards the current use of their
        admitted workloads; return their keys. The first sample of a queue only starts its clock."""
        sampled: list[str] = []
        for key, history in self._queues.items():
            since = history.sampled_at
            if since is not None and now - since < self._settings.usage_sampling_interval_seconds:
                continue
            history.sampled_at = now
            sampled.append(key)
            if since is not None:
                self._sample_one(history, running.get(key, ()), now - since)
        return tuple(sampled)

    def _sample_one(self, history: QueueHistory, running: Iterable[WorkloadInfo], seconds: float) -> None:
        if self._settings.usage_half_life_seconds <= 0:
            history.consumed = {}
            return
        fresh = self._decay(seconds)
        used: Nanos = {}
        for info in running:
            for cell, amount in info.usage:
                name = cell.key.resource
                used[name] = used.get(name, 0) + to_nanos(name, amount)
        history.consumed = {
            name: int(history.consumed.get(name, 0) * (1.0 - fresh)) + int(used.get(name, 0) * fresh)
            for name in {**history.consumed, **used}
        }

    def _decay(self, seconds: float) -> float:
        """Return the weight of the last `seconds` of use: 1 - 0.5^(seconds / half-life)."""
        half_life = self._settings.usage_half_life_seconds
        return 1.0 - 0.5 ** (seconds / half_life) if half_life > 0 else 0.0


def usage_history(settings: AdmissionFairSharing | None) -> UsageHistory | None:
    """Return an empty history; None while admission fair sharing is off."""
    return UsageHistory(settings) if settings is not None else None


def total_requests(info: WorkloadInfo) -> Nanos:
    """Return the requests of all pods of a workload, in nano units per resource."""
    total: Nanos = {}
    for pod_set in info.pod_sets:
        _add(total, {name: to_nanos(name, amount) for name, amount in pod_set.requests.items()})
    return total


def _add(total: Nanos, amounts: Mapping[str, int]) -> None:
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + amount
