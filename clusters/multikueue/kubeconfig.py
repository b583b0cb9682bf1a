"""Kubeconfigs of workers: Kueue's rules for them, and none that would run or read something here (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, Final

import yaml

from clusters.api_errors import ClusterError
from clusters.api_objects import JsonObject

SECRET_KEY: Final = "kubeconfig"  # noqa: S105 - the name of a key
_DIRECTORY: Final = PurePosixPath("/etc/multikueue/kubeconfigs")
_BAD: Final = "BadKubeConfig"
_INSECURE: Final = "InsecureKubeConfig"
_OF_CLUSTERS: Final = {"certificate-authority": "certificate-authority-data"}
_OF_USERS: Final = {
    "tokenFile": "token",
    "client-certificate": "client-certificate-data",
    "client-key": "client-key-data",
    "exec": "token",
    "auth-provider": "token",
}


def checked_path(location: str) -> str:
    """Return the path of a kubeconfig in a file. Raises ClusterError."""
    path = PurePosixPath(location)
    if ".." in path.parts or not path.is_relative_to(_DIRECTORY):
        raise ClusterError(0, _BAD, f"the kubeconfig {location} must be below {_DIRECTORY}")
    return str(path)


def read_kubeconfig(text: str | bytes) -> JsonObject:
    """Read the kubeconfig of a worker. Raises ClusterError, with Kueue's reason."""
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ClusterError(0, _BAD, f"the kubeconfig can't be read: {error}") from error
    if not isinstance(content, dict) or not content.get("current-context"):
        raise ClusterError(0, _BAD, "the kubeconfig names no current-context")
    for entry in _entries(content, "clusters", "cluster"):
        if entry.get("insecure-skip-tls-verify"):
            raise ClusterError(0, _INSECURE, "the kubeconfig must not set insecure-skip-tls-verify")
        _refuse(entry, _OF_CLUSTERS)
    for entry in _entries(content, "users", "user"):
        _refuse(entry, _OF_USERS)
    return content


def _entries(content: Mapping[str, Any], plural: str, key: str) -> list[Mapping[str, Any]]:
    listed = content.get(plural) or ()
    found = [each.get(key) for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    return [each for each in found if isinstance(each, dict)]


def _refuse(entry: Mapping[str, Any], fields: Mapping[str, str]) -> None:
    for field, instead in fields.items():
        if entry.get(field):
            raise ClusterError(0, _INSECURE, f"the kubeconfig must not set {field}: write {instead}")
