"""Finds nodes and devices for pods: filter, score, reserve. Quota is decided elsewhere; a cycle needs both.

Fit and choices are HAMi's (its Filter with default weights, or the pod's own policies): candidate nodes are ranked
by how full their devices are, and the pod's containers take devices of the best node that fits. Ties between nodes
go to the smaller name. All pods of a workload are placed, or none.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from scheduling.devices.policies.bid_price import BidPriceRanking, Price
from scheduling.devices.policies.fgd import FragmentationRanking
from scheduling.devices.policies.ranking import Ranking
from scheduling.devices.policies.typical_pods import PodMix
from scheduling.devices.requests.policy import Policy, device_policy
from scheduling.devices.requests.requests import device_resource_names
from scheduling.devices.search.answers import Answer, KeptAnswers, Unplaced
from scheduling.devices.search.cache import SearchCaches
from scheduling.devices.search.candidates import CandidateNodes, selection_key
from scheduling.devices.search.namespace_quota import NamespaceQuotas
from scheduling.devices.search.pod_usage import peak_usage
from scheduling.devices.search.refusals import Gang
from scheduling.devices.search.search import NodeTies, PodSetSearch, SearchSettings
from scheduling.devices.search.upper_bound import most_pods
from scheduling.devices.table import DeviceTable
from scheduling.model.device import DeviceSlice
from scheduling.model.node import Node
from scheduling.model.placement import (
    NodeFilters,
    Placement,
    PlacementRefusal,
    PodDeviceRequest,
    PodPlacement,
    PodSetToPlace,
)
from scheduling.model.vendor import NVIDIA, DeviceVendor

_FEW_NODES = 64
_MAX_EMPTY = 512
Refused = TypeVar("Refused")
Found = TypeVar("Found", bound=Answer)


@dataclass(frozen=True, slots=True)
class _Held:
    """The reservation of one pod, or of several alike without slices, on one node. `requests` are per pod."""

    node: str
    slices: tuple[DeviceSlice, ...]
    requests: Mapping[str, int]
    namespace: str
    pods: int = 1


class Fleet:
    """All nodes with their devices and reservations, and the search for places.

    `node_policy` and `device_policy` are the cluster's defaults; a pod's own policies take precedence. `as_hami`
    follows HAMi even where HAMi is wrong (docs/devices.md lists where). `score_includes_request` scores devices and
    nodes with the request, as HAMi documents but does not do. `node_ties` selects among equally good nodes.
    `rankings` add policies by name. The policies `fgd` and `bid-price` need typical pods (`mix`).
    """

    def __init__(
        self,
        vendors: Iterable[DeviceVendor] = (NVIDIA,),
        *,
        node_policy: str = Policy.BINPACK,
        device_policy: str = Policy.SPREAD,
        as_hami: bool = False,
        score_includes_request: bool = False,
        node_ties: NodeTies = NodeTies.SMALLER_NAME,
        rankings: Mapping[str, Ranking] | None = None,
    ) -> None:
        rows = {vendor.common_word: vendor.as_hami() if as_hami else vendor for vendor in vendors}
        self.mix = PodMix()
        self.fragmentation = FragmentationRanking(rows, self.mix)
        self._bid_prices = BidPriceRanking(rows, self.mix)
        self.settings = SearchSettings(
            rows,
            node_policy,
            device_policy,
            as_hami,
            score_includes_request,
            node_ties,
            device_resource_names(rows.values()),
            {Policy.FGD: self.fragmentation, Policy.BID_PRICE: self._bid_prices, **(rankings or {})},
        )
        self.quotas = NamespaceQuotas(rows.values())
        self._nodes: dict[str, Node] = {}
        self._with_devices: set[str] = set()
        self._reservations: dict[str, Placement] = {}
        self._held: dict[str, tuple[_Held, ...]] = {}
        self._decided: dict[tuple[str, str], tuple[int, int, int]] = {}
        self._built: DeviceTable | None = None
        self._candidates = CandidateNodes((), {})
        self._caches = SearchCaches(0)
        self._answers = KeptAnswers()
        self._fits_empty: dict[Hashable, bool] = {}
        """The answers of `fits_when_empty`: they depend on no usage, only on nodes and settings."""

    # -- nodes and reservations

    def copy_without_reservations(self) -> Fleet:
        """Return a fleet with the same nodes, settings and quotas, without reservations."""
        copy = Fleet(self.settings.vendors.values())
        copy.settings = replace(self.settings, rankings={**self.settings.rankings, **copy.settings.rankings})
        copy.mix.pods = self.mix.now()
        copy._take_over(self)
        return copy

    def with_vendors(self, vendors: Iterable[DeviceVendor]) -> Fleet:
        """Return a fleet with the same nodes, quotas and reservations, other vendors, and default policies."""
        other = Fleet(vendors)
        other._take_over(self)
        for key, placement in self._reservations.items():
            other.reserve(key, placement)
        return other

    def fits_when_empty(self, pod_set: PodSetToPlace) -> bool:
        """Return whether the nodes that a pod set selects would take all its pods if no other pod ran there, all were
        ready and no device were cordoned or unhealthy. ResourceQuotas do not count."""
        if self._is_ranked(pod_set):
            return self._is_to_fit_empty(pod_set)
        key = (pod_set.count, pod_set.by_room, pod_set.allowed_nodes, *_key_of_pods(pod_set))
        fits = self._fits_empty.get(key)
        if fits is None:
            if len(self._fits_empty) >= _MAX_EMPTY:
                self._fits_empty.clear()
            fits = self._fits_empty[key] = self._is_to_fit_empty(pod_set)
        return fits

    def _is_to_fit_empty(self, pod_set: PodSetToPlace) -> bool:
        self._ensure_table()
        rows: list[int] = self._candidates.selected(pod_set).nonzero()[0].tolist()
        # A few nodes are emptied much faster than thousands, and nearly always suffice.
        return any(self._fits_on_empty(pod_set, rows[:count]) for count in dict.fromkeys((_FEW_NODES, len(rows))))

    def _fits_on_empty(self, pod_set: PodSetToPlace, rows: Sequence[int]) -> bool:
        empty = Fleet(self.settings.vendors.values())
        empty.settings = replace(self.settings, rankings={**self.settings.rankings, **empty.settings.rankings})
        empty.mix.pods = self.mix.now()
        for row in rows:
            empty.set_node(self._candidates.nodes[row].emptied())
        return isinstance(empty.find([pod_set]), Placement)

    def _take_over(self, other: Fleet) -> None:
        for node in other._nodes.values():
            self.set_node(node)
        for quota in other.quotas.quotas:
            self.quotas.set_quota(quota)

    @property
    def nodes(self) -> Mapping[str, Node]:
        return self._nodes

    @property
    def has_devices(self) -> bool:
        """Whether any node has a device. Otherwise quota alone decides."""
        return bool(self._with_devices)

    @property
    def reservations(self) -> Mapping[str, Placement]:
        """The slices that each workload holds, by its key."""
        return self._reservations

    def decided_usage(self, node: str, uuid: str) -> tuple[int, int, int]:
        """Return our reservations on a device: slots, MiB, cores; without slices of others."""
        return self._decided.get((node, uuid), (0, 0, 0))

    def set_policies(self, node_policy: str, device_policy: str) -> None:
        """Replace the default policies."""
        self.settings = replace(self.settings, node_policy=node_policy, device_policy=device_policy)
        self._answers.clear()
        self._fits_empty.clear()

    def snapshot(self) -> tuple[SearchSettings, Any]:
        """Return the default policies and the source of typical pods. Nodes and reservations are not included."""
        return self.settings, self.mix.source

    def restore(self, values: tuple[SearchSettings, Any]) -> None:
        """Go back to a snapshot."""
        self.settings, self.mix.source = values
        self._answers.clear()
        self._fits_empty.clear()

    def set_node(self, node: Node) -> None:
        """Add or replace a node. Reservations are kept."""
        before = self._nodes.get(node.name)
        self._nodes[node.name] = node
        (self._with_devices.add if node.devices else self._with_devices.discard)(node.name)
        if self._fits_empty and (before is None or before.emptied() != node.emptied()):
            self._fits_empty.clear()
        if before == node or self._built is None:
            return
        if not self._built.replace_node(node):
            self._built = None
            return
        self._answers.note(self._built.rows[node.name])
        if before is not None and before.external_usage != node.external_usage:
            self.quotas.add_found(before.external_usage, -1)
            self.quotas.add_found(node.external_usage, 1)
        if before is None or _selection(before) != _selection(node):
            self._set_candidates(self._built)

    def delete_node(self, name: str) -> None:
        """Delete a node if it is known. Reservations on it are kept and count again when the node returns."""
        if self._nodes.pop(name, None) is not None:
            self._with_devices.discard(name)
            self._fits_empty.clear()
            self._built = None

    def reserve(self, workload_key: str, placement: Placement) -> None:
        """Reserve a placement. Raises ValueError for a workload that has one already."""
        if workload_key in self._held:
            raise ValueError(f"{workload_key} already holds a placement")
        held = self._as_held(placement.pods)
        self._reservations[workload_key] = placement
        self._held[workload_key] = held
        self._count_decided(held, 1)
        self._apply(held, 1)
        self._note(held)

    def release(self, workload_key: str) -> Placement:
        """Undo `reserve` exactly. Raises KeyError for a workload without a reservation."""
        held = self._held.pop(workload_key)
        self._count_decided(held, -1)
        self._apply(held, -1)
        self._note(held)
        return self._reservations.pop(workload_key)

    # -- the search

    def place(
        self,
        pod_sets: Sequence[PodSetToPlace],
        *,
        without: Collection[str] = (),
        instead_of: Sequence[PodPlacement] = (),
    ) -> Placement | PlacementRefusal:
        """Return a place for every pod of the pod sets, or why there is none; nothing is reserved.

        `without`: keys of workloads whose reservations count as gone (for preemption). `instead_of`: pods that these
        ones replace; their devices stay taken, but they do not count in ResourceQuotas.
        """
        key = None if without or instead_of else self._key(pod_sets)
        kept = self._answers.of(key) if key is not None else None
        if isinstance(kept, Placement):
            return kept
        if not isinstance(kept, PlacementRefusal):
            with self._without(without), self._beside_quotas(instead_of):
                kept = self._keep(key, pod_sets, self._place(pod_sets, PodSetSearch.refusal))
        return kept if isinstance(kept, Placement) else replace(kept, reasons=dict(kept.reasons))

    def find(self, pod_sets: Sequence[PodSetToPlace], *, without: Collection[str] = ()) -> Placement | Unplaced:
        """Answer like `place`, but leave out the text of a refusal. Writing the text costs more than the search, and
        most texts are never read: the next flavor fits, or other victims are tried."""
        key = None if without else self._key(pod_sets)
        kept = self._answers.of(key) if key is not None else None
        if isinstance(kept, PlacementRefusal):
            return Unplaced(kept.pod_set, kept.replica)
        if kept is not None:
            return kept
        with self._without(without):
            return self._keep(key, pod_sets, self._place(pod_sets, PodSetSearch.unplaced))

    def _key(self, pod_sets: Sequence[PodSetToPlace]) -> Hashable | None:
        """Return the key of the answer for these pods. None if it depends on more than the nodes that they select: on
        the usage of a namespace, or on the pods that a policy calls typical."""
        self._ensure_table()
        if any(self._is_ranked(pod_set) or self.quotas.limits(pod_set.namespace) for pod_set in pod_sets):
            return None
        return tuple(
            (
                pod_set.name,
                pod_set.count,
                pod_set.first_replica,
                pod_set.namespace,
                pod_set.by_room,
                pod_set.allowed_nodes,
                *_key_of_pods(pod_set),
            )
            for pod_set in pod_sets
        )

    def _is_ranked(self, pod_set: PodSetToPlace) -> bool:
        """Return whether a policy that may know more than the nodes chooses the place."""
        settings, pod = self.settings, pod_set.devices
        words = (pod.node_policy or settings.node_policy, pod.device_policy or settings.device_policy)
        return any(word in settings.rankings for word in words)

    def _keep(self, key: Hashable | None, pod_sets: Sequence[PodSetToPlace], found: Found) -> Found:
        if key is not None:
            self._answers.keep(key, found, [self._candidates.selected_anywhere(pod_set) for pod_set in pod_sets])
        return found

    def filters(self, pod_sets: Sequence[PodSetToPlace]) -> NodeFilters | None:
        """Return the refusal of the first pod without a place on each node; None if every pod has a place."""
        found = self._place(pod_sets, PodSetSearch.filters)
        return found if isinstance(found, NodeFilters) else None

    def _place(
        self, pod_sets: Sequence[PodSetToPlace], refuse: Callable[[PodSetSearch, Gang], Refused]
    ) -> Placement | Refused:
        wanted = sum(pod_set.count for pod_set in pod_sets)
        placed: list[PodPlacement] = []
        tentative: list[_Held] = []
        try:
            for pod_set in pod_sets:
                search, found = self._search(pod_set), 0
                for pods in search.places():
                    found += len(pods)
                    placed += pods
                    together = self._as_held(pods)
                    tentative += together
                    self._apply(together, 1)
                if found < pod_set.count:
                    gang = Gang(pod_set.first_replica + found, len(placed), wanted, _slices(tentative))
                    return refuse(search, gang)
        finally:
            for held in reversed(tentative):
                self._hold(held, -1)
        return Placement(tuple(placed))

    def room(self, pod_set: PodSetToPlace, *, without: Collection[str] = ()) -> dict[str, int]:
        """Node name -> the number of pods of a pod set without devices that it can take. Nodes that can take none are
        left out.
        """
        with self._without(without):
            return self._search(pod_set).room()

    def still_takes(self, placement: Placement) -> bool:
        """Return whether the nodes still have room for a placement without slices."""
        held = self._as_held(placement.pods)
        table = self._ensure_table()
        self._apply(held, 1)
        found = not any(each.slices for each in held) and not any(table.is_overfull(each.node) for each in held)
        self._apply(held, -1)
        return found

    def price(self, pod_set: PodSetToPlace) -> Price | None:
        """Return the lowest `bid-price` of one pod of a pod set, whatever its own policy; None if no node seems to take
        it."""
        return self._search(pod_set).price(self._bid_prices)

    def most_pods(self, pod: PodDeviceRequest, *, without: Collection[str] = ()) -> dict[str, int]:
        """Node name -> an upper bound of such pods on its devices (`upper_bound`)."""
        policy = device_policy(pod.device_policy or self.settings.device_policy)
        with self._without(without):
            return most_pods(self.table, self.settings.vendors, pod, mutex=policy.mutex)

    @contextmanager
    def _beside_quotas(self, pods: Sequence[PodPlacement]) -> Iterator[None]:
        replaced = [self._pod_as_held(pod) for pod in pods]
        for held in replaced:
            self.quotas.add(held.namespace, held.slices, -1)
        try:
            yield
        finally:
            for held in replaced:
                self.quotas.add(held.namespace, held.slices, 1)

    def _search(self, pod_set: PodSetToPlace) -> PodSetSearch:
        table = self._ensure_table()
        return PodSetSearch(self.settings, table, self._candidates, self.quotas, self._caches, pod_set)

    @contextmanager
    def _without(self, workload_keys: Collection[str]) -> Iterator[None]:
        gone = [held for key in dict.fromkeys(workload_keys) for held in self._held.get(key, ())]
        self._ensure_table()
        self._apply(gone, -1)
        try:
            yield
        finally:
            self._apply(gone, 1)

    @property
    def table(self) -> DeviceTable:
        """Devices and usage as arrays, built on first use."""
        return self._ensure_table()

    def _ensure_table(self) -> DeviceTable:
        if self._built is None:
            self._built = DeviceTable(self._nodes.values(), self.settings.as_hami)
            self._set_candidates(self._built)
            self.quotas.reset_usage()
            for node in self._nodes.values():
                self.quotas.add_found(node.external_usage, 1)
            for held in self._held.values():
                self._apply(held, 1)
        return self._built

    def _set_candidates(self, table: DeviceTable) -> None:
        """Set the candidates among the table's nodes and drop all caches."""
        self._candidates = CandidateNodes(table.nodes, table.rows)
        self._caches = SearchCaches(len(table.nodes))
        self._answers.clear()

    def _count_decided(self, held: Iterable[_Held], sign: int) -> None:
        for pod in held:
            for part in pod.slices:
                key = (pod.node, part.uuid)
                slots, memory, cores = self._decided.get(key, (0, 0, 0))
                counted = (
                    slots + sign * part.slots,
                    memory + sign * part.memory_mib,
                    cores + sign * part.cores_percent,
                )
                if any(counted):
                    self._decided[key] = counted
                else:
                    del self._decided[key]

    def _note(self, held: Iterable[_Held]) -> None:
        """Drop the answers that depend on nodes where these reservations were made or released."""
        if self._built is not None:
            for pod in held:
                row = self._built.rows.get(pod.node)
                if row is not None:
                    self._answers.note(row)

    def _apply(self, held: Iterable[_Held], sign: int) -> None:
        if self._built is not None:
            for pod in held:
                self._hold(pod, sign)

    def _hold(self, held: _Held, sign: int) -> None:
        table = self.table
        table.add_requests(held.node, held.requests, sign * held.pods)
        if held.slices:
            table.add_slices(held.node, held.slices, sign)
            self.quotas.add(held.namespace, held.slices, sign)

    def _as_held(self, pods: Sequence[PodPlacement]) -> tuple[_Held, ...]:
        """Return the reservations of pods; those of one pod set without slices are combined per node."""
        held: list[_Held] = []
        alike: dict[tuple[str, str, int], list[PodPlacement]] = {}
        for pod in pods:
            if any(pod.containers):
                held.append(self._pod_as_held(pod))
            else:
                alike.setdefault((pod.pod_set, pod.node, id(pod.requests)), []).append(pod)
        held += [
            _Held(node, (), members[0].requests, members[0].namespace, len(members))
            for (_, node, _), members in alike.items()
        ]
        return tuple(held)

    def _pod_as_held(self, pod: PodPlacement) -> _Held:
        peak = peak_usage(pod.containers, pod.init_container_count, as_hami=self.settings.as_hami)
        return _Held(pod.node, tuple(peak.values()), pod.requests, pod.namespace)


def _key_of_pods(pod_set: PodSetToPlace) -> tuple[Hashable, ...]:
    """Return the part of a key that tells what one pod needs, and which nodes accept it."""
    return (
        pod_set.closed_nodes,
        pod_set.devices,
        tuple(sorted(pod_set.requests.items())),
        selection_key(pod_set),
        pod_set.tolerations,
        pod_set.flavor_tolerations,
    )


def _slices(held: Iterable[_Held]) -> tuple[DeviceSlice, ...]:
    return tuple(part for pod in held for part in pod.slices)


def _selection(node: Node) -> tuple[object, ...]:
    return (node.labels, node.taints, node.ready, node.unschedulable)
