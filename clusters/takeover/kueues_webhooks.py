"""Kueue's webhook configurations: switched off while we decide, and on again.

A configuration stays where it is, with its certificates: each of its webhooks gets a selector that no object matches,
and the selectors that they had are kept in an annotation. One write does both, so a crash leaves nothing half done.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from clusters.api_objects import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, JsonObject, Kind
from clusters.client import ClusterClient

SELECTORS: Final = "kueueweb.io/object-selectors"
"""The annotation: name of a webhook -> the selector that it had, or null."""
_NAMES: Final = (
    (MUTATING_WEBHOOKS, "kueue-mutating-webhook-configuration"),
    (VALIDATING_WEBHOOKS, "kueue-validating-webhook-configuration"),
)
_OFF: Final[JsonObject] = {
    "matchExpressions": [
        {"key": "kueueweb.io/switched-off", "operator": "Exists"},
        {"key": "kueueweb.io/switched-off", "operator": "DoesNotExist"},
    ]
}


def found_configurations(client: ClusterClient) -> list[tuple[Kind, JsonObject]]:
    """Return Kueue's configurations in the cluster. Raises ClusterError."""
    found = ((kind, client.get(kind, "", name)) for kind, name in _NAMES)
    return [(kind, configuration) for kind, configuration in found if configuration is not None]


def described(configurations: Iterable[tuple[Kind, JsonObject]]) -> list[str]:
    """Return a line for each configuration."""
    return [
        f"{kind.kind} {obj['metadata']['name']}: {len(obj.get('webhooks') or ())} webhooks"
        for kind, obj in configurations
    ]


def switch_off(client: ClusterClient) -> None:
    """Make the API server stop calling Kueue's webhooks. Raises ClusterError."""
    for kind, configuration in found_configurations(client):
        kept = _kept(configuration)
        for webhook in configuration.get("webhooks") or ():
            if webhook.get("objectSelector") != _OFF:
                kept[webhook["name"]] = webhook.get("objectSelector")
                webhook["objectSelector"] = _OFF
        _write(client, kind, configuration, kept)


def switch_on(client: ClusterClient) -> None:
    """Restore the earlier selector of each webhook. Raises ClusterError."""
    for kind, configuration in found_configurations(client):
        kept = _kept(configuration)
        for webhook in configuration.get("webhooks") or ():
            if webhook.get("objectSelector") == _OFF:
                webhook["objectSelector"] = kept.get(webhook["name"]) or {}
        _write(client, kind, configuration, {})


def _kept(configuration: JsonObject) -> dict[str, Any]:
    annotations = configuration["metadata"].get("annotations") or {}
    found: dict[str, Any] = json.loads(annotations.get(SELECTORS) or "{}")
    return found


def _write(client: ClusterClient, kind: Kind, configuration: JsonObject, kept: dict[str, Any]) -> None:
    annotations = configuration["metadata"].setdefault("annotations", {})
    before = annotations.pop(SELECTORS, None)
    if kept:
        annotations[SELECTORS] = json.dumps(kept, sort_keys=True)
    if annotations.get(SELECTORS) != before:
        client.replace(kind, configuration)
