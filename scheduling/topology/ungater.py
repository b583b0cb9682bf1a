"""Assigns pods to the domains of their pod set's topology assignment (Kueue's topology ungater).

Pods of a topology-aware workload are created behind a scheduling gate. Where every pod states its rank, ranks are laid
out over the domains in stored order, so that neighbours in rank are neighbours in the topology; else pods fill the
domains in order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from scheduling.model.topology import TopologyAssignment, TopologyRequest

Domain = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TopologyPod:
    """A pod of one pod set that is not terminated; `domain` is its assigned domain, None while it is gated."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    domain: Domain | None = None


def domains_for_gated_pods(
    assignment: TopologyAssignment,
    request: TopologyRequest,
    pods: Sequence[TopologyPod],
    *,
    index_offset: int = 0,
) -> dict[str, Domain]:
    """Map each gated pod that can be ungated now to its level values; pods beyond the assignment are left out.
    `index_offset` is subtracted from pod indices (for pod sets that continue the numbering of another one)."""
    by_rank = [domain.values for domain in assignment.domains for _ in range(domain.count)]
    ranks = _ranks(request, pods, len(by_rank), index_offset)
    if ranks is not None and all(pod.domain in (None, by_rank[ranks[pod.name]]) for pod in pods):
        return {pod.name: by_rank[ranks[pod.name]] for pod in pods if pod.domain is None}
    return _in_order(by_rank, pods)


def rank_offsets(pod_sets: Sequence[tuple[str, int, str | None]]) -> dict[str, int]:
    """Return the rank at which each pod set begins, by name, with its count and the name of its group. If a group has a
    leader and workers, the larger pod set continues the numbers of the smaller one."""
    offsets = {name: 0 for name, _, _ in pod_sets}
    groups: dict[str, list[tuple[str, int]]] = {}
    for name, count, group in pod_sets:
        if group is not None:
            groups.setdefault(group, []).append((name, count))
    for first, second, *_ in (members for members in groups.values() if len(members) > 1):
        smaller, larger = (second, first) if first[1] > second[1] else (first, second)
        offsets[larger[0]] = smaller[1]
    return offsets


def node_selector(assignment: TopologyAssignment, domain: Domain) -> dict[str, str]:
    """Return the labels that tie a pod to a domain of the assignment."""
    return dict(zip(assignment.levels, domain, strict=True))


def _ranks(
    request: TopologyRequest, pods: Sequence[TopologyPod], count: int, index_offset: int
) -> dict[str, int] | None:
    """Return each pod's rank by name; None unless all ranks are readable, different, and below the number of assigned
    pods."""
    ranks: dict[str, int] = {}
    for pod in pods:
        rank = rank_of(request, pod.labels, count, index_offset)
        if rank is None or not 0 <= rank < count:
            return None
        ranks[pod.name] = rank
    return ranks if len(set(ranks.values())) == len(ranks) else None


def rank_of(request: TopologyRequest, labels: Mapping[str, str], count: int, index_offset: int = 0) -> int | None:
    """Return the rank that a pod's labels state, among `count` pods; None without a readable rank."""
    if request.pod_index_label is None:
        return None
    index = _number(labels.get(request.pod_index_label))
    if index is None:
        return None
    index -= index_offset
    if request.sub_group_index_label is None or not request.sub_group_count:
        return index
    group = _number(labels.get(request.sub_group_index_label))
    group_size = count // request.sub_group_count
    if group is None or not 0 <= group < request.sub_group_count or not 0 <= index < group_size:
        return None
    return group * group_size + index


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() else None


def _in_order(by_rank: Sequence[Domain], pods: Sequence[TopologyPod]) -> dict[str, Domain]:
    taken = Counter(pod.domain for pod in pods if pod.domain is not None)
    free: list[Domain] = []
    for domain in by_rank:
        if taken[domain]:
            taken[domain] -= 1
        else:
            free.append(domain)
    gated = sorted(pod.name for pod in pods if pod.domain is None)
    return dict(zip(gated, free, strict=False))
