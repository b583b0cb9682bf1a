"""Caches search results per kind of pod and node, so that a repeated search costs only the nodes that changed.

The kind of a pod consists of all properties that decide on which nodes it fits: its requests, its node selection and
its policies. Pending workloads are tried again each time something becomes free, and most nodes have not changed then.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from scheduling.devices.arrays import Booleans, Integers
from scheduling.devices.policies.ranking import changed_rows
from scheduling.devices.search.refusals import Finding, Findings
from scheduling.devices.table import DeviceTable

_MAX_CELLS = 4_000_000
_MIN_KINDS = 64
_MAX_FINDINGS = 2_000
_UNKNOWN = -1


@dataclass(slots=True)
class SearchCache:
    """The cached results for one kind of pod, per row of the table.

    `usable` are the rows that may take the pod at all; `fitting` those that may take it now, by the scan and by fits
    that failed since. `room` is how many more such pods each row takes, for pods without devices only. `rows` are
    the candidates that a refusal names. `vendor_scores` is what vendors add to the node's score for the devices the
    pod would get.
    """

    table: DeviceTable
    usable: Booleans
    rows: Integers
    fitting: Booleans = field(init=False)
    room: Integers = field(init=False)
    vendor_scores: NDArray[np.float32] = field(init=False)
    _seen: int = -1
    _kinds: dict[Hashable, int] = field(default_factory=dict)
    _findings: list[Finding] = field(default_factory=list)
    _nearness: list[tuple[int, int, int]] = field(default_factory=list)
    _which: NDArray[np.int32] = field(init=False)
    _reasons: dict[str, str] = field(default_factory=dict)
    _scored: Booleans = field(init=False)
    _scored_for: str = ""

    def __post_init__(self) -> None:
        self.fitting = np.zeros(len(self.usable), dtype=np.bool_)
        self.room = np.zeros(len(self.usable), dtype=np.int64)
        self.vendor_scores = np.zeros(len(self.usable), dtype=np.float32)
        self._scored = np.zeros(len(self.usable), dtype=np.bool_)
        self._which = np.full(len(self.usable), _UNKNOWN, dtype=np.int32)

    def outdated(self) -> Integers:
        """Return the rows that changed since the last call. Their findings are dropped, and the caller must set their
        `fitting`."""
        seen, self._seen = self._seen, self.table.changes.mark
        rows = np.arange(len(self.usable)) if seen < 0 else changed_rows(self.table, seen)
        self._which[rows] = _UNKNOWN
        self._scored[rows] = False
        if len(self._findings) > _MAX_FINDINGS:
            self.forget_findings()
        return rows

    def unscored(self, node_policy: str) -> Integers:
        """Return the fitting rows without a vendor score under this policy. The caller must score all of them."""
        if node_policy != self._scored_for:
            self._scored_for = node_policy
            self._scored[:] = False
        rows = np.flatnonzero(self.fitting & ~self._scored)
        self.vendor_scores[rows] = 0
        self._scored[rows] = True
        return rows

    def forget_findings(self) -> None:
        """Forget why rows refuse the pod, but remember that they do."""
        self._which[:] = _UNKNOWN
        self._kinds, self._findings, self._nearness = {}, [], []

    def unknown(self) -> Integers:
        """Return the candidates without a finding."""
        missing: Booleans = self._which[self.rows] == _UNKNOWN
        return self.rows[missing]

    def refuse(self, rows: Integers, findings: Sequence[Finding], which: Integers) -> None:
        """Record why rows refuse the pod: `which` is the index of each row's finding."""
        self._reasons = self._reasons or {self.table.nodes[row].name: "" for row in self.rows.tolist()}
        numbers = np.array([self._number(finding) for finding in findings], dtype=np.int32)
        self._which[rows] = numbers[which]
        for row, number in zip(rows.tolist(), which.tolist(), strict=True):
            self._reasons[self.table.nodes[row].name] = findings[number].reason

    def _number(self, finding: Finding) -> int:
        """Return the index of the finding among the distinct ones."""
        devices = finding.devices
        key = (finding.reason, devices is not None and (devices.request, devices.devices))
        number = self._kinds.get(key)
        if number is None:
            number = self._kinds[key] = len(self._findings)
            self._findings.append(finding)
            self._nearness.append(finding.nearness)
        return number

    def findings(self) -> Findings:
        """Return the finding of every candidate; all must be known."""
        return Findings(self.rows, self._findings, self._which[self.rows], self._nearness, dict(self._reasons))


class SearchCaches:
    """The caches of one table. The least recently used ones are dropped."""

    def __init__(self, nodes: int) -> None:
        self._max_kinds = max(_MIN_KINDS, _MAX_CELLS // max(nodes, 1))
        self._kinds: dict[Hashable, SearchCache] = {}

    def of(self, kind: Hashable) -> SearchCache | None:
        """Return the cache of a kind of pod, or None."""
        cache = self._kinds.pop(kind, None)
        if cache is not None:
            self._kinds[kind] = cache
        return cache

    def keep(self, kind: Hashable, cache: SearchCache) -> None:
        while len(self._kinds) >= self._max_kinds:
            del self._kinds[next(iter(self._kinds))]
        self._kinds[kind] = cache
