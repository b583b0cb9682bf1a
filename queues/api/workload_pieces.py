"""Carries out an action on many workloads in pieces, each in a transaction of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from accounts.models import Cluster
from accounts.services.audit import one_line
from queues.models import Workload
from queues.services.workloads import Action, Keys

PIECE: Final = 250
"""How many workloads of one request are changed in one transaction: a batch waits for their rows for up to 2 s."""


def in_pieces(action: Action, cluster: Cluster, keys: Keys, size: int = PIECE) -> list[tuple[str, str]]:
    """Apply an action to any number of workloads, with one audit record for each kind and namespace.

    Each piece is committed on its own, in the order in which all writers lock workloads, so the scheduler's batches can
    run in between. If it is interrupted, the committed pieces stay, and the same request again completes the rest.
    """
    keys = list(dict.fromkeys(keys))
    if len(keys) == 1:
        return action(cluster, keys)
    found = _in_lock_order(cluster, keys)
    changed: set[tuple[str, str]] = set()
    with one_line():
        for start in range(0, len(found), size):
            changed.update(action(cluster, found[start : start + size]))
    return [key for key in keys if key in changed]


def _in_lock_order(cluster: Cluster, keys: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the workloads that there are."""
    rows = Workload.objects.filter(
        cluster=cluster, namespace__in={key[0] for key in keys}, name__in=[key[1] for key in keys]
    )
    wanted = set(keys)
    return [key for key in rows.order_by("pk").values_list("namespace", "name") if key in wanted]
