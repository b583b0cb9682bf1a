"""The rights of our accounts, as the manifests of deploy/kubernetes grant them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

ACCOUNTS: Final = ("kueueweb-watcher", "kueueweb-push", "kueueweb-web", "kueueweb-webhook", "kueueweb-visibility")
_INSTALLED: Final = Path(__file__).resolve().parent.parent / "kubernetes"
_CLONE: Final = Path(__file__).resolve().parents[2] / "deploy" / "kubernetes"
_NAMESPACE: Final = "kueueweb"
_LEASE: Final = "kueueweb-push-lease"
"""Installations look for the lease in the namespace kueueweb, wherever they are."""


@dataclass(frozen=True, slots=True)
class Right:
    """One verb on one resource. `namespace` is empty for the whole cluster, `name` for all objects."""

    role: str
    namespace: str
    group: str
    resource: str
    verb: str
    name: str = ""

    def __str__(self) -> str:
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {resource}" + (f"/{self.name}" if self.name else "")


def manifests_folder() -> Path:
    """Return the folder of the manifests: in the image or the wheel, or else in the clone."""
    return _INSTALLED if _INSTALLED.is_dir() else _CLONE


def rights_of(account: str, files: Sequence[str], *, own_namespace: str, tenants: Sequence[str]) -> Iterator[Right]:
    """Yield the rights that the files bind to an account.

    * own_namespace: the namespace of this installation.
    * tenants: the namespaces of `tenant.yaml`'s bindings.
    """
    objects = [item for file in files for item in _objects(file)]
    shared = _objects("rbac.yaml") if "rbac.yaml" not in files else []
    roles = {(item["kind"], item["metadata"]["name"]): item for item in (*shared, *objects) if "rules" in item}
    for binding in objects:
        if account in {subject["name"] for subject in binding.get("subjects") or ()}:
            role = roles[binding["roleRef"]["kind"], binding["roleRef"]["name"]]
            for namespace in _namespaces(binding, own_namespace, tenants):
                yield from _rights(role, namespace)


def _objects(file: str) -> list[dict[str, Any]]:
    return [item for item in yaml.safe_load_all((manifests_folder() / file).read_text(encoding="utf-8")) if item]


def _namespaces(binding: Mapping[str, Any], own_namespace: str, tenants: Sequence[str]) -> Sequence[str]:
    if binding["kind"] == "ClusterRoleBinding":
        return ("",)
    namespace = binding["metadata"].get("namespace")
    if namespace is None:
        return tenants
    return (own_namespace if namespace == _NAMESPACE and binding["metadata"]["name"] != _LEASE else namespace,)


def _rights(role: Mapping[str, Any], namespace: str) -> Iterator[Right]:
    for rule in role["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                for verb in rule["verbs"]:
                    for name in rule.get("resourceNames") or ("",):
                        yield Right(role["metadata"]["name"], namespace, group, resource, verb, name)
