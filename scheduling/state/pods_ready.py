"""Pods that must be ready before anybody else is admitted (`blockAdmission`)."""

from __future__ import annotations

from scheduling.model.configuration import Configuration
from scheduling.model.vocabulary import ConditionType
from scheduling.state.workload_info import WorkloadInfo


class Readiness:
    """Who holds quota and is not ready. The first workload that fits meanwhile stops the whole scheduler, not only its
    ClusterQueue, until all are ready; what does not fit, or must preempt first, is decided on until then."""

    __slots__ = ("_stopped", "_waited_for")

    def __init__(self) -> None:
        self._waited_for: set[str] = set()
        self._stopped = False

    @property
    def is_waited_for(self) -> bool:
        """Whether a workload that fits must wait."""
        return bool(self._waited_for)

    @property
    def is_stopped(self) -> bool:
        """Whether a workload that fits waits, and all others with it."""
        return self._stopped

    def stop(self) -> None:
        """Note that a workload fits and must wait."""
        self._stopped = True

    def watch(self, info: WorkloadInfo, configuration: Configuration) -> None:
        """Note whether a workload that holds quota is waited for."""
        ready = configuration.wait_for_pods_ready
        if ready is not None and ready.block_admission and not info.workload.is_true(ConditionType.PODS_READY):
            self._waited_for.add(info.key)
        else:
            self.forget(info.key)

    def forget(self, key: str) -> None:
        """It is ready, or holds quota no more."""
        self._waited_for.discard(key)
        self._stopped = self._stopped and bool(self._waited_for)

    def snapshot(self) -> tuple[set[str], bool]:
        """What is known, to undo to."""
        return set(self._waited_for), self._stopped

    def restore(self, values: tuple[set[str], bool]) -> None:
        """Go back to a snapshot."""
        self._waited_for, self._stopped = values
