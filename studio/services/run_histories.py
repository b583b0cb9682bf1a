"""The ended runs of clusters, which a studio reads further from time to time."""

from __future__ import annotations

from collections.abc import Collection

from accounts.models import Cluster
from scheduling.estimates.run_times import RunHistory
from studio.services.kept_estimates import read_runs


class RunHistories:
    """The ended runs by cluster, as one process has read them."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[RunHistory, int]] = {}
        """By cluster: its runs, and the key of the newest record among them."""

    def of(self, cluster: Cluster) -> RunHistory:
        """Return the ended runs of a cluster; runs that have ended since the last call are read first."""
        history, newest = self._known.get(cluster.pk, (RunHistory(), 0))
        self._known[cluster.pk] = history, read_runs(cluster, history, newest)
        return history

    def keep(self, clusters: Collection[int]) -> None:
        """Forget the runs of other clusters than these."""
        self._known = {key: known for key, known in self._known.items() if key in clusters}
