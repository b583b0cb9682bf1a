"""Stores the webhook's certificates in a Secret of the cluster, so that all replicas serve the same ones."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

from clusters.api_errors import ClusterError
from clusters.api_objects import SECRETS, JsonObject
from clusters.client import ClusterClient
from clusters.webhook.certificates import Certificates, renewed

_FIELDS: Final = {
    "authorities": "ca.crt",
    "authority_key": "ca.key",
    "certificate": "tls.crt",
    "key": "tls.key",
}
_MAX_ATTEMPTS: Final = 5


class CertificateStore:
    """The certificates of these host names, made and renewed by the first process that finds them due."""

    def __init__(
        self, client: ClusterClient, namespace: str, name: str, hosts: Sequence[str], now: Callable[[], datetime]
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self._hosts = hosts
        self._now = now

    def current(self) -> Certificates:
        """Raises ClusterError."""
        for _ in range(_MAX_ATTEMPTS):
            secret = self._client.get(SECRETS, self._namespace, self._name)
            found = _read(secret) if secret is not None else None
            wanted = renewed(found, self._hosts, self._now())
            if wanted == found or self._write(secret, wanted):
                return wanted
        raise ClusterError(409, "Conflict", f"other clients keep writing the Secret {self._namespace}/{self._name}")

    def _write(self, secret: JsonObject | None, certificates: Certificates) -> bool:
        """Write the certificates; return whether this process was the first."""
        data = {key: base64.b64encode(getattr(certificates, field)).decode() for field, key in _FIELDS.items()}
        metadata = {"namespace": self._namespace, "name": self._name}
        try:
            if secret is None:
                made = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": data}
                self._client.create(SECRETS, made)
            else:
                version = {"resourceVersion": secret["metadata"]["resourceVersion"]}
                self._client.patch(SECRETS, self._namespace, self._name, {"metadata": version, "data": data})
        except ClusterError as error:
            if not error.conflict:
                raise
            return False
        return True


def _read(secret: JsonObject) -> Certificates | None:
    """None if the Secret is empty: it may have been made so that we need no right to create any."""
    data = secret.get("data") or {}
    if any(not data.get(key) for key in _FIELDS.values()):
        return None
    return Certificates(**{field: base64.b64decode(data[key]) for field, key in _FIELDS.items()})
