"""Namespaces that the cluster lacks when their first job arrives."""

from __future__ import annotations

from http import HTTPStatus

from accounts.models import Cluster, Namespace
from clusters.api_errors import ClusterError
from clusters.api_objects import NAMESPACES
from clusters.client import ClusterClient


def make_namespace(cluster: Cluster, client: ClusterClient, name: str) -> bool:
    """Create the namespace with the labels and annotations of its row; False if the cluster already has it.

    From then on the row follows the cluster's object, whose labels decide which ClusterQueues accept its workloads.
    Raises ClusterError.
    """
    if client.get(NAMESPACES, "", name) is not None:
        return False
    rows = Namespace.objects.filter(cluster=cluster, name=name)
    rows.update(in_cluster=True)  # before it is read: a later edit is refused instead of lost
    row = rows.first()
    metadata = {"name": name}
    if row is not None:
        metadata |= {"labels": row.labels, "annotations": row.annotations}
    try:
        client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    except ClusterError as error:
        if _is_refusal(error):
            rows.update(in_cluster=False)
        raise
    return True


def _is_refusal(error: ClusterError) -> bool:
    """Return whether the cluster has certainly not made the object. It may have after a time-out or an error of the
    server, and has it after a conflict: another client was first. The watcher's next list tells."""
    return HTTPStatus.BAD_REQUEST <= error.status < HTTPStatus.INTERNAL_SERVER_ERROR and not (
        error.conflict or error.status == HTTPStatus.REQUEST_TIMEOUT
    )
