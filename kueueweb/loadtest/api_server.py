"""The counts that an API server keeps of itself: requests that it carried out, and processor time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from clusters.api_errors import ClusterError
from clusters.client import ClusterClient

_REQUESTS: Final = "apiserver_request"
_PROCESSOR: Final = "process_cpu_seconds"

RequestKind = tuple[str, str]
"""(verb, resource with its subresource), such as ("PATCH", "jobs/status")."""


@dataclass(frozen=True, slots=True)
class ServerCounts:
    """Counts since the server started; a difference of two is that of the time between.

    * processor_seconds: of the API server alone, without etcd; None where it does not say.
    """

    requests: Mapping[RequestKind, int] = field(default_factory=dict)
    processor_seconds: float | None = None

    def since(self, before: ServerCounts) -> ServerCounts:
        """Return the counts of the time since `before`; kinds of requests that did not occur are left out."""
        requests = Counter(self.requests)
        requests.subtract(before.requests)
        taken = None
        if self.processor_seconds is not None and before.processor_seconds is not None:
            taken = self.processor_seconds - before.processor_seconds
        return ServerCounts({kind: count for kind, count in requests.items() if count > 0}, taken)


def server_counts(client: ClusterClient) -> ServerCounts | None:
    """Read `/metrics`; None if the client may not read it, or if the server has none."""
    try:
        text = client.metrics()
    except ClusterError:
        return None
    requests: Counter[RequestKind] = Counter()
    taken: float | None = None
    for family in text_string_to_metric_families(text):
        if family.name == _REQUESTS:
            for sample in family.samples:
                subresource = sample.labels.get("subresource")
                resource = sample.labels["resource"] + (f"/{subresource}" if subresource else "")
                requests[sample.labels["verb"], resource] += int(sample.value)
        elif family.name == _PROCESSOR:
            taken = sum(sample.value for sample in family.samples)
    return ServerCounts(requests, taken) if requests else None
