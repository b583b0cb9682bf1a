"""Fields of Kueue's Configuration about its process: fields that our processes follow, and fields of its Deployment."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from scheduling.manifest import FieldReader, MistakeReason
from scheduling.manifest.syntax import dns_label

_MAX_PORT: Final = 65_535
_TLS_VERSIONS: Final = ("VersionTLS12", "VersionTLS13")
_OLD: Final = ("gracefulShutDown", "cacheNamespace", "syncPeriod")
"""Fields of controller-runtime's old Configuration, which v1beta1 still accepts."""
_ANY_NUMBER: Final = 1e9
_NO_PROFILES: Final = ("", "0")


@dataclass(frozen=True, slots=True)
class Listener:
    """The address and port of a server. None and an empty address leave them to the command line."""

    address: str = ""
    port: int | None = None


def webhook_listener(configuration: Mapping[str, Any]) -> Listener:
    """Return the address and port of the admission webhook."""
    block = configuration.get("webhook") or {}
    return Listener(block.get("host") or "", block.get("port"))


def visibility_listener(configuration: Mapping[str, Any]) -> Listener:
    """Return the address and port of the visibility API."""
    block = configuration.get("visibilityServer") or {}
    return Listener(block.get("bindAddress") or "", block.get("bindPort"))


def request_rate(configuration: Mapping[str, Any], per_second: float, burst: float) -> tuple[float, float]:
    """Return how many requests a process may send to the cluster per second, and in a burst; a negative rate means no
    limit. `per_second` and `burst` apply if the Configuration does not set them."""
    block = configuration.get("clientConnection") or {}
    said = block.get("qps")
    rate = per_second if said is None else float(said) if said > 0 else _ANY_NUMBER
    return rate, float(block.get("burst") or burst)


def needs_given_certificates(configuration: Mapping[str, Any]) -> bool:
    """Return whether the webhook's certificate must be provided (`internalCertManagement.enable: false`)."""
    return (configuration.get("internalCertManagement") or {}).get("enable") is False


def requires_tls_13(configuration: Mapping[str, Any]) -> bool:
    """Return whether servers refuse TLS versions older than 1.3."""
    return (configuration.get("tls") or {}).get("minVersion") == _TLS_VERSIONS[1]


def tls_1_2_ciphers(configuration: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the cipher suites of TLS 1.2 that servers offer, by OpenSSL's names; empty means the library's choice."""
    suites = (configuration.get("tls") or {}).get("cipherSuites") or ()
    return tuple(_CIPHERS[name] for name in suites if name in _CIPHERS)


_CIPHERS: Final[Mapping[str, str]] = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305": "ECDHE-RSA-CHACHA20-POLY1305",
}
_ALWAYS_OFFERED: Final = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
"""Cipher suites of TLS 1.3, which cannot be configured."""


def read_process_settings(top: FieldReader, *, old: bool) -> None:
    """Report mistakes in the fields about Kueue's program.

    The sizes of its Deployment (`health`, `leaderElection`, `controller`, `metrics.bindAddress`) are accepted without
    effect, because the replicas, probes and ports of our processes are set in our own manifests.
    """
    top.text("namespace", syntax=dns_label)
    _read_listeners(top)
    _read_certificates(top)
    _read_tls(top)
    _read_connection(top)
    _read_leader_election(top)
    top.mapping("health")
    _read_controller(top)
    if top.text("pprofBindAddress") not in _NO_PROFILES:
        _refuse(top, "pprofBindAddress", "kueueweb does not serve Go profiles", "Remove it.")
    if old:
        top.ignore(*_OLD, "queueVisibility")


def _refuse(block: FieldReader, key: str, rule: str, remedy: str) -> None:
    block.error(key, f"Unsupported value: {rule}", remedy, MistakeReason.NOT_SUPPORTED)


def _read_listeners(top: FieldReader) -> None:
    webhook = top.fields("webhook")
    if webhook is not None:
        webhook.optional_integer("port", minimum=1, maximum=_MAX_PORT)
        webhook.text("host")
        if webhook.text("certDir"):
            _refuse(
                webhook,
                "certDir",
                "certificate files are given one by one",
                "Pass --certificate and --key to the webhook.",
            )
        webhook.close()
    visibility = top.fields("visibilityServer")
    if visibility is not None:
        visibility.optional_integer("bindPort", minimum=1, maximum=_MAX_PORT)
        visibility.text("bindAddress", syntax=_address)
        visibility.close()


def _address(text: str) -> str | None:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return "must be an IP address"
    return None


def _read_certificates(top: FieldReader) -> None:
    block = top.fields("internalCertManagement")
    if block is None:
        return
    block.boolean("enable", default=True)
    for key, option in (("webhookServiceName", "--service"), ("webhookSecretName", "--secret")):
        if block.text(key):
            _refuse(
                block,
                key,
                f"the option {option} sets the webhook's name",
                f"Pass it with {option}, and remove it here.",
            )
    block.close()


def _read_tls(top: FieldReader) -> None:
    block = top.fields("tls")
    if block is None:
        return
    version = block.text("minVersion")
    if version and version not in _TLS_VERSIONS:
        _refuse(block, "minVersion", f"supported values: {', '.join(_TLS_VERSIONS)}", f"Use {_TLS_VERSIONS[0]}.")
    suites = block.texts("cipherSuites")
    if suites and version == _TLS_VERSIONS[1]:
        rule = f"must not be set together with minVersion {version}"
        block.error("cipherSuites", rule, "Remove one of the two.", MistakeReason.FORBIDDEN)
    unknown = [name for name in suites if name not in _CIPHERS and name not in _ALWAYS_OFFERED]
    if unknown:
        known = ", ".join((*_CIPHERS, *_ALWAYS_OFFERED))
        _refuse(block, "cipherSuites", ", ".join(unknown), f"Supported: {known}.")
    if block.sequence("curvePreferences"):
        _refuse(block, "curvePreferences", "the TLS library chooses the curves", "Remove it.")
    block.close()


def _read_connection(top: FieldReader) -> None:
    block = top.fields("clientConnection")
    if block is None:
        return
    qps = block.take("qps")
    if qps is not None and (isinstance(qps, bool) or not isinstance(qps, int | float)):
        block.error("qps", "must be a number", "Write digits only, without quotes.", MistakeReason.WRONG_TYPE)
    elif qps == 0:
        block.error("qps", "must not be 0", "Write a negative number for no limit, or remove it.")
    block.optional_integer("burst", minimum=1)
    block.close()


def _read_leader_election(top: FieldReader) -> None:
    block = top.fields("leaderElection")
    if block is None:
        return
    if not block.boolean("leaderElect", default=True):
        _refuse(
            block, "leaderElect", "one scheduler always leads, and the others stand by", "Write true, or remove it."
        )


def _read_controller(top: FieldReader) -> None:
    block = top.fields("controller")
    if block is None:
        return
    concurrency = block.fields("groupKindConcurrency")
    for kind in concurrency.content if concurrency is not None else ():
        if concurrency is not None:
            concurrency.optional_integer(kind, minimum=1)
    block.optional_integer("cacheSyncTimeout", maximum=2**63 - 1)
    block.close()
