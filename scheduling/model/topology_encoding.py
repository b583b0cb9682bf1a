"""Encodes and decodes topology assignments in the compact form of a Workload's status.

An assignment of many domains is a list of slices (runs of domains). A slice holds, per level, either one value for
all its domains, or their values with a common suffix and then a common prefix factored out; and either one pod count
for all domains or one each. Expanding the slices in order gives the domains. The v1beta1 form, a plain list of
domains, can be read too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from scheduling.model.topology import TopologyAssignment, TopologyDomain

MAX_SLICES = 1000
MAX_DOMAINS_PER_SLICE = 100_000

_TRAILING_NUMBER = re.compile(r"[0-9]*\Z")


def encode(assignment: TopologyAssignment) -> dict[str, Any]:
    """Write the `topologyAssignment` of a pod set's status.

    Raises ValueError if it takes more than MAX_SLICES slices. Domains whose last values differ in more than a trailing
    number are split into runs if that makes the encoding no longer.
    """
    whole = [_slice(run) for run in _chunks(assignment.domains)]
    by_prefix = [
        _slice(run) for _, domains in groupby(assignment.domains, key=_prefix) for run in _chunks(list(domains))
    ]
    slices = by_prefix if len(by_prefix) <= MAX_SLICES and _length(by_prefix) <= _length(whole) else whole
    if len(slices) > MAX_SLICES:
        raise ValueError(f"{len(assignment.domains)} domains take {len(slices)} slices, more than {MAX_SLICES}")
    return {"levels": list(assignment.levels), "slices": slices}


def decode(manifest: Mapping[str, Any]) -> TopologyAssignment:
    """Read a `topologyAssignment`, encoded or (v1beta1) with plain `domains`.

    Raises KeyError for a missing field, and ValueError if the lengths of a slice's lists disagree.
    """
    levels = tuple(manifest["levels"])
    if "domains" in manifest:
        plain = (TopologyDomain(tuple(domain["values"]), int(domain["count"])) for domain in manifest["domains"])
        return TopologyAssignment(levels, tuple(plain))
    domains = tuple(domain for part in manifest["slices"] for domain in _expand(part, len(levels)))
    return TopologyAssignment(levels, domains)


def _prefix(domain: TopologyDomain) -> tuple[str, ...]:
    *upper, last = domain.values
    return (*upper, _TRAILING_NUMBER.sub("", last))


def _chunks(domains: Sequence[TopologyDomain]) -> Iterable[Sequence[TopologyDomain]]:
    for start in range(0, len(domains), MAX_DOMAINS_PER_SLICE):
        yield domains[start : start + MAX_DOMAINS_PER_SLICE]


def _slice(domains: Sequence[TopologyDomain]) -> dict[str, Any]:
    counts = [domain.count for domain in domains]
    return {
        "domainCount": len(domains),
        "valuesPerLevel": [_values(column) for column in zip(*(domain.values for domain in domains), strict=True)],
        "podCounts": {"universal": counts[0]} if len(set(counts)) == 1 else {"individual": counts},
    }


def _values(column: Sequence[str]) -> dict[str, Any]:
    if len(set(column)) == 1:
        return {"universal": column[0]}
    suffix = _common_prefix([value[::-1] for value in column])[::-1]
    roots = [value[: len(value) - len(suffix)] for value in column]
    prefix = _common_prefix(roots)
    roots = [root[len(prefix) :] for root in roots]
    individual: dict[str, Any] = {"prefix": prefix} if prefix else {}
    if suffix:
        individual["suffix"] = suffix
    return {"individual": {**individual, "roots": roots}}


def _common_prefix(texts: Sequence[str]) -> str:
    first, last = min(texts), max(texts)
    differing = (position for position, letter in enumerate(first) if last[position : position + 1] != letter)
    return first[: next(differing, len(first))]


def _length(slices: Sequence[Mapping[str, Any]]) -> int:
    return len(json.dumps(slices, separators=(",", ":")))


def _expand(part: Mapping[str, Any], level_count: int) -> Iterable[TopologyDomain]:
    size = int(part["domainCount"])
    columns = [_column(values, size) for values in part["valuesPerLevel"]]
    if len(columns) != level_count:
        raise ValueError(f"a slice has values for {len(columns)} levels where the assignment has {level_count}")
    pod_counts = part["podCounts"]
    counts = [pod_counts["universal"]] * size if "universal" in pod_counts else pod_counts["individual"]
    if len(counts) != size:
        raise ValueError(f"a slice of {size} domains has {len(counts)} pod counts")
    for values, count in zip(zip(*columns, strict=True), counts, strict=True):
        yield TopologyDomain(values, int(count))


def _column(values: Mapping[str, Any], size: int) -> list[str]:
    if "universal" in values:
        return [values["universal"]] * size
    individual = values["individual"]
    prefix, suffix = individual.get("prefix") or "", individual.get("suffix") or ""
    column = [f"{prefix}{root}{suffix}" for root in individual["roots"]]
    if len(column) != size:
        raise ValueError(f"a slice of {size} domains has {len(column)} values on a level")
    return column
