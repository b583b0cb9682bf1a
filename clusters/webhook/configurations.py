"""The webhook's configurations for the API server: which requests it sends, our address, and the failure policies
(pure).

Each rule has two webhooks. The webhook of objects with a queue name fails closed: while no webhook answers, such
objects cannot be created or changed. The webhook of all others fails open. Kueue's own objects fail open too, except
for new flavors: a dry run of one is how Kueue's users ask whether its webhook answers.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from clusters.api_objects import (
    JOB_FLOWS,
    JOB_TEMPLATES,
    MUTATING_WEBHOOKS,
    VALIDATING_WEBHOOKS,
    JsonObject,
    Kind,
)
from clusters.jobs.framework.job_kind import JobKind, Stopping
from clusters.jobs.registry import KINDS
from clusters.served.contents import WITH_FINALIZER
from clusters.served.kueue_kinds import GROUP, KUEUE_KINDS
from clusters.webhook.admission import MUTATE_JOBS, MUTATE_PODS, VALIDATE_JOBS, VALIDATE_STARTS
from clusters.webhook.conversion import CONVERT
from clusters.webhook.kueue_objects import MUTATE_KUEUE, VALIDATE_KUEUE
from clusters.webhook.reviews import CREATE, UPDATE
from clusters.webhook.volcano_objects import VALIDATE_FLOWS
from queues.manifests import kueue_keys as keys

NAME: Final = "admission.kueueweb.io"
"""The name of both configurations. Webhooks are called in the order of these names: this is before HAMi's."""
TIMEOUT_SECONDS: Final = 5
_NEVER: Final = ("kube-system", "kube-public", "kube-node-lease")
"""Namespaces that no webhook may block."""
_FLAVOR: Final = "ResourceFlavor"
_POLICIES: Final = {"queued": ("Exists", "Fail"), "others": ("DoesNotExist", "Ignore")}

_Operations = Callable[[JobKind], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Target:
    """The address for the API server: a Service in its cluster, or a `url` without a path.

    `authorities` in PEM; None keeps the present ones.
    """

    namespace: str = ""
    service: str = ""
    port: int = 443
    url: str = ""
    authorities: bytes | None = None

    def client_config(self, path: str) -> JsonObject:
        where: JsonObject = {"url": f"{self.url.rstrip('/')}{path}"} if self.url else {"service": self._service(path)}
        if self.authorities is not None:
            where["caBundle"] = base64.b64encode(self.authorities).decode()
        return where

    def moved(self, config: JsonObject) -> JsonObject:
        """Return a clientConfig with our address under its path, if it names a Service where we have a URL, or the
        other way round; any other clientConfig is returned unchanged."""
        ours, theirs = ("url", "service") if self.url else ("service", "url")
        if theirs not in config:
            return config
        path = config["service"].get("path", "") if self.url else urlsplit(config["url"]).path
        kept = {key: value for key, value in config.items() if key != theirs}
        return {**kept, ours: self.client_config(path)[ours]}

    def _service(self, path: str) -> JsonObject:
        return {"namespace": self.namespace, "name": self.service, "port": self.port, "path": path}


def webhook_configurations(target: Target) -> list[tuple[Kind, JsonObject]]:
    """Return both configurations, each with its kind."""
    mutating = [
        *_webhooks("jobs", MUTATE_JOBS, _defaulted, target),
        *_webhooks("pods", MUTATE_PODS, _placed, target),
        _kueue_webhook(MUTATE_KUEUE, sorted(WITH_FINALIZER - {_FLAVOR}), (CREATE,), target),
        {
            **_kueue_webhook(MUTATE_KUEUE, [_FLAVOR], (CREATE,), target),
            "name": f"flavors.kueue.{NAME}",
            "failurePolicy": "Fail",
        },
    ]
    validating = [
        *_webhooks("jobs", VALIDATE_JOBS, lambda _: (CREATE, UPDATE), target),
        *_webhooks("starts", VALIDATE_STARTS, _guarded, target),
        _kueue_webhook(VALIDATE_KUEUE, sorted(KUEUE_KINDS), (CREATE, UPDATE), target),
        _flow_webhook(target),
    ]
    for webhook in mutating:
        webhook["reinvocationPolicy"] = "Never"
    return [(MUTATING_WEBHOOKS, _object(MUTATING_WEBHOOKS, mutating)),
            (VALIDATING_WEBHOOKS, _object(VALIDATING_WEBHOOKS, validating))]  # fmt: skip


def conversion(target: Target) -> JsonObject:
    """`spec.conversion` of the definitions of Kueue's objects."""
    return {
        "strategy": "Webhook",
        "webhook": {"clientConfig": target.client_config(CONVERT), "conversionReviewVersions": ["v1"]},
    }


def _defaulted(kind: JobKind) -> Sequence[str]:
    """Updates too, in which a job may be put into a queue. Pods are updated often: one that waits at a gate may enter a
    queue only when it is created, which `/validate/jobs` holds."""
    return (CREATE,) if kind.stopping is Stopping.DELETE else (CREATE, UPDATE)


def _placed(kind: JobKind) -> Sequence[str]:
    return (CREATE,) if kind.stopping is Stopping.DELETE else ()


def _guarded(kind: JobKind) -> Sequence[str]:
    return () if kind.stopping is Stopping.DELETE_PODS else (UPDATE,)


def _object(kind: Kind, webhooks: Sequence[JsonObject]) -> JsonObject:
    metadata = {"name": NAME, "labels": {"app.kubernetes.io/name": "kueueweb"}}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "webhooks": list(webhooks)}


def _webhooks(name: str, path: str, operations: _Operations, target: Target) -> list[JsonObject]:
    rules = list(_rules(operations))
    never = sorted({*_NEVER, *([target.namespace] if target.namespace else ())})
    return [
        {
            "name": f"{which}.{name}.{NAME}",
            "admissionReviewVersions": ["v1"],
            "clientConfig": target.client_config(path),
            "failurePolicy": policy,
            "matchPolicy": "Equivalent",
            "namespaceSelector": _expression("kubernetes.io/metadata.name", "NotIn", never),
            "objectSelector": _expression(keys.QUEUE_NAME, operator),
            "rules": rules,
            "sideEffects": "None",
            "timeoutSeconds": TIMEOUT_SECONDS,
        }
        for which, (operator, policy) in _POLICIES.items()
    ]


def _kueue_webhook(path: str, kinds: Sequence[str], operations: Sequence[str], target: Target) -> JsonObject:
    """Return the webhook of Kueue's own objects. It fails open: the watcher checks an object that no webhook has
    checked, and the object changes nothing until it can be read."""
    rule = {
        "apiGroups": [GROUP],
        "apiVersions": ["v1beta1", "v1beta2"],
        "operations": list(operations),
        "resources": sorted(KUEUE_KINDS[name][0].plural for name in kinds),
        "scope": "*",
    }
    return {
        "name": f"objects.kueue.{NAME}",
        "admissionReviewVersions": ["v1"],
        "clientConfig": target.client_config(path),
        "failurePolicy": "Ignore",
        "matchPolicy": "Equivalent",
        "rules": [rule],
        "sideEffects": "None",
        "timeoutSeconds": TIMEOUT_SECONDS,
    }


def _flow_webhook(target: Target) -> JsonObject:
    """Return the webhook of Volcano's flows. It fails open: the watcher checks them again."""
    group, _, version = JOB_FLOWS.api_version.partition("/")
    rule = {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": [CREATE, UPDATE],
        "resources": [JOB_FLOWS.plural, JOB_TEMPLATES.plural],
        "scope": "Namespaced",
    }
    return {
        "name": f"flows.{NAME}",
        "admissionReviewVersions": ["v1"],
        "clientConfig": target.client_config(VALIDATE_FLOWS),
        "failurePolicy": "Ignore",
        "matchPolicy": "Equivalent",
        "rules": [rule],
        "sideEffects": "None",
        "timeoutSeconds": TIMEOUT_SECONDS,
    }


def _expression(key: str, operator: str, values: Iterable[str] = ()) -> JsonObject:
    expression: dict[str, Any] = {"key": key, "operator": operator}
    return {"matchExpressions": [{**expression, "values": list(values)} if values else expression]}


def _rules(operations: _Operations) -> Iterable[JsonObject]:
    """Yield a rule for each requested version of a group."""
    resources: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for kind in KINDS.values():
        if asked := tuple(operations(kind)):
            resources.setdefault((kind.group, kind.version, asked), []).append(kind.plural)
    for (group, version, asked), plurals in sorted(resources.items()):
        yield {
            "apiGroups": [group],
            "apiVersions": [version],
            "operations": list(asked),
            "resources": sorted(plurals),
            "scope": "Namespaced",
        }
