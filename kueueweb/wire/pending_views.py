"""Kueue's visibility API in the wire format: `kueuectl list workload` reads positions in the queue from it.

Discovery does not name its queues, because k9s would take them for those of `kueue.x-k8s.io`.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from rest_framework.request import Request
from rest_framework.response import Response

from clusters.served.pending_workloads import GROUP, PENDING_WORKLOADS, limited, summary
from kueueweb.wire.base import WireView
from kueueweb.wire.object_reading import ObjectReader, Selection
from kueueweb.wire.refusals import Refusal, forbidden, not_found
from kueueweb.wire.resources import RESOURCES, Resource
from kueueweb.wire.rights import reads
from queues.api.filters import query_text
from queues.querysets import PendingPositions

_QUEUES: Final = {
    resource.plural: resource for resource in RESOURCES if resource.kind in ("ClusterQueue", "LocalQueue")
}


class PendingWorkloadsView(WireView):
    """The pending workloads of a queue that the user may see. Positions count the workloads of other namespaces too."""

    plural: ClassVar[str]
    version: ClassVar[str]

    def get(self, request: Request, name: str, namespace: str = "") -> Response:
        """Return a PendingWorkloadsSummary."""
        resource = _QUEUES[self.plural]
        if not reads(self.access, resource, namespace):
            plural = f"{self.plural}/{PENDING_WORKLOADS}"
            raise forbidden(f"{self.plural}.{GROUP}", "get", GROUP, plural, self.access.username, namespace, name)
        positions = self._positions(resource, namespace, name)
        query = {
            key: query_text(request.query_params, key) for key in ("limit", "offset") if key in request.query_params
        }
        try:
            part = limited(positions, query)
        except ValueError as refused:
            raise Refusal(400, str(refused)) from refused
        return Response(summary(part, self.version))

    def _positions(self, resource: Resource, namespace: str, name: str) -> PendingPositions:
        row: Any = ObjectReader(self.reach, resource, resource.versions[0]).rows(Selection(namespace, name)).first()
        if row is None:
            raise not_found(f"{resource.singular}.{GROUP}", GROUP, resource.singular, name)
        visible = self.access.visible_namespaces()
        if not namespace:
            return PendingPositions(row.cluster_id, name, namespaces=visible)
        return PendingPositions(
            row.cluster_id, row.cluster_queue_name, namespace=namespace, local_queue=name, namespaces=visible
        )
