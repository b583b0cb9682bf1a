"""The admission webhook, by the road of users' jobs: a dry run makes the API server call it."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature

from accounts.models import Cluster
from clusters.api_errors import ClusterError
from clusters.api_objects import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, JsonObject, Kind
from clusters.client import ClusterClient
from clusters.webhook.configurations import NAME
from kueueweb.checkup.finding import Finding, fail, ok, warn
from queues.models import LocalQueue

_JOBS: Final = Kind("batch/v1", "Job", "jobs")
_SECRETS: Final = Kind("v1", "Secret", "secrets")
_FAILED: Final = "failed calling webhook"
_SOON: Final = timedelta(days=7)
_RESTART: Final = (
    "Check that pods of the webhook are ready and that the API server reaches them (NetworkPolicy, firewall)."
)


def webhook_checks(cluster: Cluster, client: ClusterClient, namespace: str) -> Iterator[Finding]:
    """Yield whether the webhook is registered with a valid certificate, if we may read that, and whether it answers the
    API server. Nothing is stored in the cluster.

    * namespace: of the Secret with the certificate.
    """
    if cluster.is_mirrored:
        return
    yield from _certificate(cluster, client, namespace)
    queue = LocalQueue.objects.filter(cluster=cluster).order_by("namespace", "name").first()
    if queue is not None:
        yield _asked(cluster, client, queue)


def _certificate(cluster: Cluster, client: ClusterClient, namespace: str) -> Iterator[Finding]:
    check = f"webhook-certificate/{cluster.name}"
    try:
        found = [client.get(kind, "", NAME) for kind in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)]
        secret = client.get(_SECRETS, namespace, "webhook-certificates")
    except ClusterError as error:
        if error.status != HTTPStatus.FORBIDDEN:
            yield warn(check, f"not known: {error}", "Run doctor again.")
        return  # only the webhook's own account can read it
    if None in found:
        yield fail(
            check, f"the API server does not call the webhook: there is no {NAME}",
            "kubectl apply -f deploy/kubernetes/webhook-configurations.yaml, or helm upgrade.",
        )  # fmt: skip
        return
    bundles = {hook["clientConfig"].get("caBundle", "") for each in found if each for hook in each["webhooks"]}
    yield _judged(check, bundles, (secret or {}).get("data") or {}, datetime.now(UTC))


def _judged(check: str, bundles: set[str], data: JsonObject, now: datetime) -> Finding:
    """Return whether the certificate is valid, and signed by the authority in the webhook configuration."""
    restart = "Restart the webhook's pods: they create and register a certificate."
    if bundles == {""} or not bundles or not data.get("tls.crt"):
        return fail(check, "no certificate is registered", "Start the webhook: it creates and registers one.")
    [bundle, *others] = sorted(bundles)
    try:
        [authority, *_] = x509.load_pem_x509_certificates(base64.b64decode(bundle))
        certificate = x509.load_pem_x509_certificate(base64.b64decode(data["tls.crt"]))
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature) as error:
        return fail(check, f"caBundle and certificate do not match: {str(error) or 'wrong signature'}", restart)
    ends = certificate.not_valid_after_utc
    if others:
        return fail(check, f"{NAME} has several authorities", restart)
    if ends <= now:
        return fail(check, f"expired on {ends:%Y-%m-%d}", restart)
    if ends - now < _SOON:
        return warn(check, f"expires on {ends:%Y-%m-%d}", restart)
    return ok(check, f"valid until {ends:%Y-%m-%d}")


def _asked(cluster: Cluster, client: ClusterClient, queue: LocalQueue) -> Finding:
    """Have the API server take a Job as a dry run."""
    check = f"webhook/{cluster.name}"
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1m"}}}
    labels = {"kueue.x-k8s.io/queue-name": queue.name}
    job: JsonObject = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"namespace": queue.namespace, "name": f"checkup-{uuid.uuid4().hex[:8]}", "labels": labels},
        "spec": {"suspend": True, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    }
    try:
        client.create(_JOBS, job, dry_run=True)
    except ClusterError as error:
        if _FAILED in str(error):
            return fail(check, str(error), _RESTART)
        if error.status == HTTPStatus.FORBIDDEN and "admission webhook" not in str(error):
            return ok(check, "not checked: this account cannot create jobs (run doctor in a push pod)")
        if error.status >= HTTPStatus.INTERNAL_SERVER_ERROR or error.status == 0:
            return warn(check, f"not known: {error}", "Run doctor again.")
        return ok(check, f"answers the API server: {error}")
    return ok(check, f"the API server accepted a Job of {queue.namespace} as a dry run")
