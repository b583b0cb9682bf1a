"""The address and the credentials of a Kubernetes API server: from a kubeconfig, or the account of our own pod.

The functions import Kubernetes' package when they are called: it takes a quarter of a second, and most processes never
speak to a cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clusters.api_errors import ClusterError, ClusterUnreachable
from clusters.client import PAGE_SIZE, ClusterClient, TokenBucket


def connect(
    server: str = "", pace: TokenBucket | None = None, *, page_size: int = PAGE_SIZE, read_only: bool = False
) -> ClusterClient:
    """Return a client of the server at the URL; without a URL, of the pod's own cluster, or else of the kubeconfig's
    current context. An https URL gets the credentials and the certificate authority of the kubeconfig's context for
    that URL, or else the pod's own, or else the current context's. An http URL gets no credentials, because they would
    be sent in clear text. Raises ClusterUnreachable if there is no configuration at all."""
    from kubernetes.client import Configuration

    configuration = Configuration()
    if not server.startswith("http://"):
        _load_credentials(configuration, server)
    if server:
        _point(configuration, server.rstrip("/"))
    return ClusterClient(configuration, pace, page_size=page_size, read_only=read_only)


def _point(configuration: Any, server: str) -> None:
    """Set the address, also after each time that the package reads the kubeconfig again to refresh a token."""
    refresh = configuration.refresh_api_key_hook

    def refresh_and_point(refreshed: Any) -> None:
        refresh(refreshed)
        # Reading the kubeconfig again sets both.
        refreshed.refresh_api_key_hook = refresh_and_point
        refreshed.host = server

    if refresh is not None:
        configuration.refresh_api_key_hook = refresh_and_point
    configuration.host = server


def _load_credentials(configuration: Any, server: str) -> None:
    from kubernetes import config as kubernetes_config

    context = _context_for(server) if server else None
    try:
        if context is None:
            try:
                kubernetes_config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]  # the package is not typed
            except kubernetes_config.ConfigException:
                kubernetes_config.load_kube_config(client_configuration=configuration)  # type: ignore[no-untyped-call]  # ditto
        else:
            kubernetes_config.load_kube_config(context=context, client_configuration=configuration)  # type: ignore[no-untyped-call]  # ditto
    except kubernetes_config.ConfigException as error:
        where = f"no credentials for {server} are" if server else "no API server is"
        raise ClusterUnreachable(f"{where} configured: {error}") from error


def _context_for(server: str) -> str | None:
    """Return the kubeconfig's context whose cluster is at that URL, the present one first; None without one."""
    from kubernetes import config as kubernetes_config
    from kubernetes.config import kube_config

    try:
        merged = kube_config.KubeConfigMerger(kube_config.KUBE_CONFIG_DEFAULT_LOCATION).config  # type: ignore[no-untyped-call]  # ditto
    except kubernetes_config.ConfigException:
        return None
    content = getattr(merged, "value", None) or {}
    named = {entry.value["name"]: entry.value.get("cluster") or {} for entry in content.get("clusters") or ()}
    present = content.get("current-context")
    contexts = sorted(
        (entry.value for entry in content.get("contexts") or ()), key=lambda each: each["name"] != present
    )
    for entry in contexts:
        cluster = named.get((entry.get("context") or {}).get("cluster")) or {}
        if str(cluster.get("server") or "").rstrip("/") == server.rstrip("/"):
            return str(entry["name"])
    return None


def connect_kubeconfig(content: Mapping[str, Any], pace: TokenBucket | None = None) -> ClusterClient:
    """Return a client for the current context of a kubeconfig. Raises ClusterError with the reason BadKubeConfig."""
    from kubernetes import config as kubernetes_config
    from kubernetes.client import Configuration

    configuration = Configuration()
    try:
        kubernetes_config.load_kube_config_from_dict(dict(content), client_configuration=configuration)  # type: ignore[no-untyped-call]  # ditto
    except kubernetes_config.ConfigException as error:
        raise ClusterError(0, "BadKubeConfig", str(error)) from error
    return ClusterClient(configuration, pace)
