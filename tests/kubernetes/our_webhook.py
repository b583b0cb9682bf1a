"""Our webhook beside a real API server, with the rights of its own account."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import yaml

from accounts.models import Cluster
from clusters.webhook.configurations import Target, webhook_configurations
from clusters.webhook.server import Registration
from clusters.webhook.surroundings import ClusterSurroundings
from tests.acceptance.processes import wait_for
from tests.clusters.system import gpu_job
from tests.clusters.webhook.served import ServedWebhook
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.system import documents, kind_of

_US: Final = "system:serviceaccount:kueueweb:kueueweb-push"


@contextmanager
def our_webhook(plane: ControlPlane, cluster: Cluster) -> Iterator[ServedWebhook]:
    """The API server asks it."""
    for manifest in documents("webhook.yaml"):
        if manifest["kind"] not in ("Deployment", "PodDisruptionBudget", "NetworkPolicy"):
            plane.admin.apply(kind_of(manifest), manifest)
    client = plane.client(plane.token_of("kueueweb", "kueueweb-webhook"))
    surroundings = ClusterSurroundings(cluster, client, frozenset({_US}))
    with ServedWebhook(surroundings) as served:
        target = Target(url=served.url)
        for kind, configuration in webhook_configurations(target):
            plane.admin.apply(kind, configuration)
        Registration(client, target, surroundings.observes_only).write(served.certificates.authorities)
        wait_for("the API server to ask the webhook", lambda: _suspends(plane), 30)
        yield served
        for kind, configuration in webhook_configurations(target):
            plane.admin.delete(kind, "", configuration["metadata"]["name"])


def _suspends(plane: ControlPlane) -> bool:
    try:
        answer = plane.kubectl("create", "--dry-run=server", "-o", "yaml", "-f", "-", manifests=[gpu_job("asks")])
    except AssertionError:
        return False  # it does not know the certificate yet
    return yaml.safe_load(answer)["spec"].get("suspend") is True
