"""The search for the pods of one pod set: scan all nodes at once, rank them, fit the pod on the best one."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from scheduling.devices.arrays import Booleans, Doubles, Floats, Integers
from scheduling.devices.fit.device_fit import FitContext
from scheduling.devices.fit.device_state import DeviceState
from scheduling.devices.fit.fit import fit_pod
from scheduling.devices.fit.outcome import Outcome
from scheduling.devices.policies.bid_price import BidPriceRanking, Price
from scheduling.devices.policies.ranking import Ranking
from scheduling.devices.requests.policy import BY_RANKING, Policy, device_policy
from scheduling.devices.search import by_room
from scheduling.devices.search.answers import Unplaced
from scheduling.devices.search.cache import SearchCache, SearchCaches
from scheduling.devices.search.candidates import CandidateNodes, selection_key
from scheduling.devices.search.namespace_quota import NamespaceQuotas
from scheduling.devices.search.node_refusals import refused_by, room_refusal
from scheduling.devices.search.refusals import Finding, Findings, Gang, refusal, refused_devices
from scheduling.devices.table import DeviceTable
from scheduling.devices.vendors import vendor_score
from scheduling.model.device import DeviceRequest
from scheduling.model.placement import (
    DeviceRefusal,
    NodeFilters,
    NodeRefusal,
    PlacementRefusal,
    PodPlacement,
    PodSetToPlace,
    QuotaShortage,
)
from scheduling.model.vendor import DeviceVendor, FitKind, NodeScore


class NodeTies(StrEnum):
    """The choice among several nodes with the best score.

    HAMi scores nodes in parallel and takes the last best one to finish. On one processor the last node finishes
    first and the others follow in order, so the last but one wins.
    """

    SMALLER_NAME = "smaller-name"
    """The first by name, which makes decisions repeatable."""
    LAST_DONE = "last-done"
    """The last by name, but the last node of all only if no other has its score, as in HAMi on one processor: for
    recordings of HAMi."""


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """The settings of a fleet for all its searches: vendors by word, default policies, HAMi's quirks, device
    resources."""

    vendors: dict[str, DeviceVendor]
    node_policy: str
    device_policy: str
    as_hami: bool
    score_includes_request: bool
    node_ties: NodeTies
    device_resources: frozenset[str]
    rankings: Mapping[str, Ranking]


class PodSetSearch:
    """Finds places for the pods of a pod set one by one. The caller reserves each before it requests the next."""

    def __init__(
        self,
        settings: SearchSettings,
        table: DeviceTable,
        candidates: CandidateNodes,
        quotas: NamespaceQuotas,
        caches: SearchCaches,
        pod_set: PodSetToPlace,
    ) -> None:
        self._settings = settings
        self._table = table
        self._candidates = candidates
        self._pod_set = pod_set
        self._pod = pod_set.devices
        self._quotas = quotas
        self._requests: Mapping[str, int] = pod_set.requests
        if not pod_set.by_room:
            devices = settings.device_resources
            self._requests = {name: amount for name, amount in pod_set.requests.items() if name not in devices}
        self._node_policy = self._pod.node_policy or settings.node_policy
        device_word = self._pod.device_policy or settings.device_policy
        self._node_ranking = settings.rankings.get(self._node_policy)
        self._device_ranking = settings.rankings.get(device_word)
        self._context = FitContext(
            BY_RANKING if self._device_ranking is not None else device_policy(device_word),
            self._pod.weights,
            settings.vendors,
            settings.as_hami,
            settings.score_includes_request,
            quotas.check(pod_set.namespace),
        )
        self._asked = _distinct((*self._pod.init_containers, *self._pod.containers))
        self._exact = self._scan_is_exact()
        ranked = self._device_ranking if not self._exact else None
        basis = ranked.basis() if ranked is not None else ""
        self._shared = self._context.quota is None and basis is not None
        # All topology domains share one cache, because room on a node is the same in each.
        self._limited = pod_set.by_room and pod_set.allowed_nodes is not None
        self._everywhere = replace(pod_set, allowed_nodes=None) if self._limited else pod_set
        self._cache = self._recall(caches, (device_word, basis) if ranked is not None else None)

    def _recall(self, caches: SearchCaches, order: Hashable) -> SearchCache:
        """Return the cache for this kind of pod. Results that depend on a namespace's quota (so on more than one node)
        or on chance are not cached."""
        pod_set = self._everywhere
        kind = (
            selection_key(pod_set),
            pod_set.tolerations,
            pod_set.flavor_tolerations,
            pod_set.allowed_nodes,
            pod_set.closed_nodes,
            tuple(sorted(self._requests.items())),
            self._pod,
            self._context.policy,
            order,
            pod_set.by_room,
        )
        cache = caches.of(kind) if self._shared else None
        if cache is None:
            rows = np.flatnonzero(self._candidates.selected(pod_set))
            cache = SearchCache(self._table, self._candidates.usable(pod_set), rows)
            if self._shared:
                caches.keep(kind, cache)
        return cache

    def places(self) -> Iterator[list[PodPlacement]]:
        """Yield places for the pods until a pod has none. The caller reserves each place before it requests the
        next."""
        first, count = self._pod_set.first_replica, self._pod_set.count
        if self._pod_set.by_room:
            yield self._fill(first, count)
            return
        for replica in range(first, first + count):
            pod = self.next_pod(replica)
            if pod is None:
                return
            yield [pod]

    def _fill(self, replica: int, count: int) -> list[PodPlacement]:
        """Places for as many of `count` pods without devices as there is room for, numbered from `replica`."""
        self._look_again()
        pod_set, table = self._pod_set, self._table
        init = len(self._pod.init_containers)
        containers = ((),) * (init + len(self._pod.containers))
        found: list[PodPlacement] = []
        for row, pods in by_room.fill(self._allowed_room(), table.has_devices, count, self._node_policy):
            first, node = replica + len(found), table.nodes[row].name
            found += [
                PodPlacement(pod_set.name, number, node, containers, init, self._requests, pod_set.namespace)
                for number in range(first, first + pods)
            ]
        return found

    def _allowed_room(self) -> Integers:
        room, names = self._cache.room, self._pod_set.allowed_nodes
        if not self._limited or names is None:
            return room
        rows = [row for name in names if (row := self._table.rows.get(name)) is not None]
        allowed = np.zeros_like(room)
        allowed[rows] = room[rows]
        return allowed

    def room(self) -> dict[str, int]:
        """Node name -> the number of these pods (without devices) that it can take. Nodes that can take none are left
        out.
        """
        self._look_again()
        nodes, room = self._table.nodes, self._cache.room
        return {nodes[row].name: int(room[row]) for row in np.flatnonzero(room).tolist()}

    def next_pod(self, replica: int) -> PodPlacement | None:
        """Return the best place for one more pod, given the current usage; None if no node takes it."""
        if self._quotas.shortage(self._pod_set.namespace, self._pod) is not None:
            return None
        for row in self._ranked_rows():
            name = self._table.nodes[row].name
            containers, refused = fit_pod(name, self._devices(row), self._pod, self._context)
            if containers is None:
                self._cache.fitting[row] = False
                if self._shared:
                    self._cache.refuse(np.array([row]), [Finding(str(refused), refused)], np.array([0]))
            else:
                return PodPlacement(
                    self._pod_set.name,
                    replica,
                    name,
                    containers,
                    len(self._pod.init_containers),
                    self._requests,
                    self._pod_set.namespace,
                )
        return None

    def price(self, bid_prices: BidPriceRanking) -> Price | None:
        """Return the price of one more pod on the node with the smallest loss; None if no node seems to take it."""
        self._look_again()
        fitting = self._cache.fitting
        if not fitting.any():
            return None
        scores = np.where(fitting, bid_prices.node_scores(self._table, self._pod_set, fitting), -np.inf)
        return bid_prices.price(self._table, int(np.argmax(scores)), self._pod_set)

    def _devices(self, row: int) -> list[DeviceState]:
        devices = self._table.devices(row)
        if self._device_ranking is not None:
            scores = self._device_ranking.device_scores(self._table, row, self._pod_set)
            for device, score in zip(devices, scores, strict=True):
                device.score = score
        return devices

    def _look_again(self) -> None:
        """Scan the nodes that changed."""
        rows = self._cache.outdated()
        if len(rows):
            self._cache.fitting[rows] = self._scan(rows)

    def _scan(self, rows: Integers) -> Booleans:
        """Tells which nodes may take the pod. False is always right; True is seldom wrong."""
        if self._pod_set.by_room:
            room = np.where(self._cache.usable[rows], self._table.pods_per_row(self._requests, rows), 0)
            self._cache.room[rows] = room
            return np.asarray(room > 0, dtype=np.bool_)
        fitting: Booleans = self._cache.usable[rows] & self._table.rows_with_room(self._requests, rows)
        for request in self._asked:
            rules = self._settings.vendors[request.vendor].rules
            constraints = self._pod.constraints_of(request.vendor)
            fitting &= self._table.rows_with_devices(request, rules, constraints, self._context.policy.mutex, rows)
        return fitting

    def _ranked_rows(self) -> Iterator[int]:
        """Yield the nodes that may take the pod, best first."""
        self._look_again()
        fitting = self._cache.fitting
        if not fitting.any():
            return
        order = self._tie_order()
        scores = np.where(fitting, self._node_scores(), -np.inf)[order]
        best = int(order[np.argmax(scores)])
        yield best
        for row in order[np.argsort(-scores, kind="stable")].tolist():
            if row != best and fitting[row]:
                yield row

    def _tie_order(self) -> Integers:
        """Return the rows in the order in which equal scores are preferred."""
        rows = np.arange(len(self._table.nodes))
        if self._settings.node_ties is NodeTies.SMALLER_NAME:
            return rows
        return np.concatenate((rows[:-1][::-1], rows[-1:]))

    def _node_scores(self) -> Doubles | Floats:
        """Return a score per node; larger is better."""
        if self._node_ranking is not None:
            return self._node_ranking.node_scores(self._table, self._pod_set, self._cache.fitting)
        scores = self._table.base_scores + self._vendor_scores()
        if self._settings.score_includes_request:
            scores = self._table.scores_with([request for container in self._pod.containers for request in container])
        return -scores if self._node_policy == Policy.SPREAD else scores

    def _vendor_scores(self) -> Floats | float:
        """Return the requested vendors' additions to each node's score. This requires a fit of the pod on every
        node."""
        vendors = self._settings.vendors
        scoring = [vendors[word] for word in sorted({request.vendor for request in self._asked}) if word in vendors]
        scoring = [vendor for vendor in scoring if vendor.rules.node_score is not NodeScore.NONE]
        if not scoring:
            return 0.0
        cache = self._cache
        for row in cache.unscored(self._node_policy).tolist():
            node, devices = self._table.nodes[row], self._devices(row)
            containers, _ = fit_pod(node.name, devices, self._pod, self._context)
            if containers is not None:
                outcome = Outcome(node, devices, containers, self._node_policy)
                cache.vendor_scores[row] = sum(
                    vendor_score(outcome, vendor, self._pod.constraints_of(vendor.common_word)) for vendor in scoring
                )
        return cache.vendor_scores

    def refusal(self, gang: Gang) -> PlacementRefusal:
        """Return why no node takes the next pod."""
        findings = self._findings()
        if self._pod_set.by_room:
            return room_refusal(self._table, self._pod_set, gang, findings)
        shortage = self._quota_shortage(findings, gang)
        return refusal(self._table, self._context.as_hami, self._pod_set, gang, findings, shortage)

    def unplaced(self, gang: Gang) -> Unplaced:
        """Return which pod no node takes, without the reason."""
        return Unplaced(self._pod_set.name, gang.replica)

    def filters(self, gang: Gang) -> NodeFilters:
        """Return the refusal of the next pod on each node."""
        refused = self.refusal(gang)
        nodes = len(self._table.nodes)
        return NodeFilters(
            pod_set=refused.pod_set,
            replica=refused.replica,
            nodes=nodes,
            refused=tuple(refused_by(self._table, self._findings())),
            nearest_node=refused.nearest_node,
            nearest_reason=refused.nearest_reason,
            message=refused.message,
            namespace_quota=refused.quota is not None,
            by_room=refused.by_room,
        )

    def _quota_shortage(self, findings: Findings, gang: Gang) -> QuotaShortage | None:
        """Return the namespace's quota shortage for the pod on a node refused for quota; None if no node was."""
        row = findings.row_with(DeviceRefusal.RESOURCE_QUOTA_NOT_FIT) if self._context.quota is not None else None
        if row is None:
            return None
        devices_mib: dict[str, int] = {}
        for device in self._table.devices(row):
            vendor = device.device.vendor
            devices_mib[vendor] = max(devices_mib.get(vendor, 0), device.device.memory_mib)
        return self._quotas.shortage(self._pod_set.namespace, self._pod, devices_mib, gang.held)

    def _findings(self) -> Findings:
        self._look_again()
        cache = self._cache
        if not self._shared or self._limited:
            cache.forget_findings()
        rows = cache.unknown()
        left = np.ones(len(rows), dtype=np.bool_)
        for reasons, which in self._node_refusals(rows):
            hit = left & (which >= 0)
            cache.refuse(rows[hit], [Finding(reason) for reason in reasons], which[hit])
            left &= ~hit
        cache.refuse(rows[left], *self._device_findings(rows[left]))
        found = cache.findings()
        if self._limited:
            cache.forget_findings()
        return found

    def _node_refusals(self, rows: Integers) -> Iterator[tuple[Sequence[str], Integers]]:
        """Refusals of nodes apart from devices, with the index of each row's refusal or -1; the first that applies
        wins."""
        yield tuple(NodeRefusal), self._candidates.refusals(self._pod_set)[rows]
        names, missing = self._table.missing_resources(self._requests, rows)
        yield [f"{NodeRefusal.INSUFFICIENT_RESOURCE} {name}" for name in names], missing
        if self._asked:
            yield [DeviceRefusal.NODE_UNREGISTERED], -self._table.has_devices[rows].astype(np.int64)
        if self._limited:  # room may exist in another topology domain
            yield [NodeRefusal.NODE_NOT_SELECTED], np.zeros(len(rows), dtype=np.int64)
        shortage = self._quotas.shortage(self._pod_set.namespace, self._pod)
        if shortage is not None and not self._settings.vendors[shortage.vendor].rules.resource_quota:
            # HAMi checks the quota of these vendors when the pod is created, not per device.
            yield [DeviceRefusal.RESOURCE_QUOTA_NOT_FIT], np.zeros(len(rows), dtype=np.int64)

    def _device_findings(self, rows: Integers) -> tuple[list[Finding], Integers]:
        if self._exact:
            request = self._asked[0]
            vendor = self._settings.vendors[request.vendor]
            constraints = self._pod.constraints_of(request.vendor)
            return refused_devices(self._table, rows, request, vendor, constraints, self._context.policy.mutex)
        found = []
        for row in rows.tolist():
            _, refused = fit_pod(self._table.nodes[row].name, self._devices(row), self._pod, self._context)
            found.append(Finding(str(refused), refused))
        return found, np.arange(len(rows))

    def _scan_is_exact(self) -> bool:
        """Return whether testing each device alone gives the same result as a fit on the node."""
        return (
            self._context.quota is None
            and sum(map(len, (*self._pod.init_containers, *self._pod.containers))) == 1
            and not any(constraints.numa_bind for _, constraints in self._pod.constraints)
            and all(self._device_by_device(request) for request in self._asked)
            and not self._table.has_mig.any()
        )

    def _device_by_device(self, request: DeviceRequest) -> bool:
        rules = self._settings.vendors[request.vendor].rules
        alone = rules.kind in (FitKind.COMMON, FitKind.NVIDIA)
        return alone and not rules.one_device_per_pod and not rules.slots_only


def _distinct(containers: Iterable[Sequence[DeviceRequest]]) -> list[DeviceRequest]:
    return list(dict.fromkeys(request for container in containers for request in container))
