"""WaitForPodsReady with `blockAdmission`: admitted pods must be ready before another workload is admitted."""

from __future__ import annotations

from scheduling.model.configuration import Configuration
from scheduling.model.vocabulary import ConditionType
from scheduling.state.workload_info import WorkloadInfo


class Readiness:
    """The workloads that hold quota without being ready.

    The first workload that fits meanwhile stops the whole scheduler, not only its ClusterQueue, until all of them are
    ready. Until then, workloads that do not fit or must preempt first are still decided.
    """

    __slots__ = ("_stopped", "_waited_for")

    def __init__(self) -> None:
        self._waited_for: set[str] = set()
        self._stopped = False

    @property
    def is_waited_for(self) -> bool:
        """Whether some admitted workload is not ready, so that a workload that fits must wait."""
        return bool(self._waited_for)

    @property
    def is_stopped(self) -> bool:
        """Whether a workload that fits is waiting, which stops admission everywhere."""
        return self._stopped

    def stop(self) -> None:
        """Stop admission: a workload fits and must wait."""
        self._stopped = True

    def watch(self, info: WorkloadInfo, configuration: Configuration) -> None:
        """Track a workload that holds quota until its pods are ready."""
        ready = configuration.wait_for_pods_ready
        if ready is not None and ready.block_admission and not info.workload.is_true(ConditionType.PODS_READY):
            self._waited_for.add(info.key)
        else:
            self.forget(info.key)

    def forget(self, key: str) -> None:
        """Stop tracking a workload that is ready or holds no quota any more."""
        self._waited_for.discard(key)
        self._stopped = self._stopped and bool(self._waited_for)

    def snapshot(self) -> tuple[set[str], bool]:
        """Return a copy of all fields."""
        return set(self._waited_for), self._stopped

    def restore(self, values: tuple[set[str], bool]) -> None:
        """Go back to a snapshot."""
        self._waited_for, self._stopped = values
