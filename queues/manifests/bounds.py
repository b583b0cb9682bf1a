"""The maximum size of one object, and the maximum total request of one workload."""

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

import orjson

from foundation.exceptions import ManifestErrors
from queues.manifests.workload import WorkloadSpec
from scheduling.manifest import LocatedError, MistakeReason
from scheduling.model.quantity import UNLIMITED

MAX_OBJECT_BYTES: Final = 3 * 2**19
"""1.5 MiB: Kubernetes' store accepts no larger object."""

MAX_REPLICAS: Final = 50_000
"""The maximum number of replicas of one Deployment; each replica is a workload."""


def size_mistake(content: Any, document: int = 0, path: str = "") -> LocatedError | None:
    """Return the mistake if an object is too large."""
    size = _size(content)
    if size <= MAX_OBJECT_BYTES:
        return None
    rule = f"Too long: may not be more than {MAX_OBJECT_BYTES} bytes as JSON, is {size}"
    return LocatedError(document, path, size, rule, "Keep data in a ConfigMap or a volume.", MistakeReason.TOO_LONG)


def _size(content: Any) -> int:
    try:
        return len(orjson.dumps(content))
    except orjson.JSONEncodeError:  # YAML may have keys that are numbers, and integers beyond 64 bits
        return len(json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"))


def check_totals(specs: Iterable[WorkloadSpec]) -> None:
    """Raise `ManifestErrors` for workloads whose pods request more than 64 bits in total.

    Single requests are checked when they are read. Kubernetes counts in 64 bits, so a cluster could not add them up.
    """
    right: set[int] = set()
    mistakes: list[LocatedError] = []
    for spec in specs:
        if id(spec.pod_sets) not in right:  # equal pod sets of a request are parsed once and share one object
            found = _totals(spec)
            mistakes += found
            if not found:
                right.add(id(spec.pod_sets))
    if mistakes:
        raise ManifestErrors(mistakes)


def _totals(spec: WorkloadSpec) -> list[LocatedError]:
    totals = Counter[str]()
    for pod_set in spec.pod_sets:
        for resource, amount in pod_set.requests.items():
            totals[resource] += pod_set.count * amount
    return [
        LocatedError(
            spec.document,
            f"pod_sets.requests[{resource}]",
            str(total),
            f"must be below 2^63 in the resource's base unit for all pods together, is {total}",
            "Request fewer pods, or less per pod.",
        )
        for resource, total in totals.items()
        if total >= UNLIMITED
    ]
