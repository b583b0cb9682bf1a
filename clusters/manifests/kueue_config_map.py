"""Kueue's Configuration in the ConfigMap that Kueue's own Deployment mounts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from foundation.exceptions import HostileManifest, ManifestErrors
from queues.manifests.documents import read_documents
from scheduling.manifest import ValidationReport

NAME: Final = "kueue-manager-config"
NAMESPACE: Final = "kueue-system"
KEY: Final = "controller_manager_config.yaml"
_GROUP: Final = "config.kueue.x-k8s.io/"


def held_configuration(
    content: Mapping[str, Any], report: ValidationReport, path: str = ""
) -> tuple[str, Mapping[str, Any]] | None:
    """Return the Configuration in a ConfigMap, with its path; None for every other object. Text that is not YAML is
    reported."""
    data = content.get("data")
    text = data.get(KEY) if isinstance(data, Mapping) else None
    if content.get("kind") != "ConfigMap" or content.get("apiVersion") != "v1" or not isinstance(text, str):
        return None
    place = f"{path}.data[{KEY}]" if path else f"data[{KEY}]"
    try:
        documents = read_documents(text)
    except (HostileManifest, ManifestErrors) as mistake:
        report.error(place, None, mistake.errors[0].rule, mistake.errors[0].remedy)
        return None
    if len(documents) != 1 or not str(documents[0].content.get("apiVersion")).startswith(_GROUP):
        return None
    return place, documents[0].content
