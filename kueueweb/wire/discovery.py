"""Discovery: which groups, versions and resources are served, in the aggregated form and in the older one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kueueweb.wire import definitions
from kueueweb.wire.resources import Resource, groups

VERBS: Final = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
READS: Final = ("get", "list", "watch")
AUTHORIZATION: Final = "authorization.k8s.io"
AUTHENTICATION: Final = "authentication.k8s.io"
REVIEWS: Final = {
    AUTHORIZATION: (
        ("selfsubjectaccessreviews", "SelfSubjectAccessReview"),
        ("selfsubjectrulesreviews", "SelfSubjectRulesReview"),
    ),
    AUTHENTICATION: (("selfsubjectreviews", "SelfSubjectReview"),),
}
"""Questions of users about themselves, in version v1: group -> (plural, kind)."""
_OTHERS: Final[Mapping[str, Sequence[tuple[str, str, tuple[str, ...], tuple[str, ...]]]]] = {
    **{group: [(plural, kind, ("create",), ()) for plural, kind in found] for group, found in REVIEWS.items()},
    definitions.GROUP: [(definitions.PLURAL, definitions.KIND, definitions.VERBS, ("crd", "crds"))],
}
"""The resources that are no rows, in version v1: group -> (plural, kind, verbs, short names)."""


def verbs_of(resource: Resource) -> list[str]:
    """Return the verbs of a resource. As in Kubernetes, namespaces are deleted one at a time. Observed objects can be
    read."""
    if resource.is_observed:
        return list(READS)
    return [verb for verb in VERBS if verb != "deletecollection" or resource.kind != "Namespace"]


def subresources_of(resource: Resource) -> list[str]:
    """Return the subresources of a resource, all of which can be read."""
    return [*(["status"] if resource.has_status else []), *resource.subresources]


def core_versions() -> dict[str, Any]:
    """Return the answer to GET /api."""
    addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": ""}]
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}


def group_list() -> dict[str, Any]:
    """Return the answer to GET /apis."""
    found = [_group(name, list(versions)) for name, versions in groups().items() if name]
    found += [_group(name, ["v1"]) for name in _OTHERS]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": found}


def group(name: str) -> dict[str, Any] | None:
    """Return the answer to GET /apis/GROUP."""
    found = next((each for each in group_list()["groups"] if each["name"] == name), None)
    return None if found is None else {"kind": "APIGroup", "apiVersion": "v1", **found}


def _group(name: str, versions: Sequence[str]) -> dict[str, Any]:
    entries = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": entries, "preferredVersion": entries[0]}


def resource_list(group: str, version: str) -> dict[str, Any] | None:
    """Return the answer to GET /api/v1 and /apis/GROUP/VERSION."""
    served = groups().get(group, {}).get(version, [])
    others = _OTHERS.get(group, ()) if version == "v1" else ()
    if not served and not others:
        return None
    entries: list[dict[str, Any]] = []
    for resource in served:
        entry = {
            "name": resource.plural, "singularName": resource.singular, "namespaced": resource.namespaced,
            "kind": resource.kind, "verbs": verbs_of(resource),
        }  # fmt: skip
        entries.append({**entry, **_short(resource.short_names)})
        for name in subresources_of(resource):
            common = {"singularName": "", "namespaced": resource.namespaced, "kind": resource.kind}
            entries.append({"name": f"{resource.plural}/{name}", **common, "verbs": ["get"]})
    entries += [
        {
            "name": plural,
            "singularName": kind.lower(),
            "namespaced": False,
            "kind": kind,
            "verbs": list(verbs),
            **_short(short),
        }
        for plural, kind, verbs, short in others
    ]
    group_version = f"{group}/{version}" if group else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": entries}


def aggregated(*, core: bool) -> dict[str, Any]:
    """Return the same in one answer (apidiscovery.k8s.io): for /api, or for /apis."""
    items: list[dict[str, Any]] = []
    for name, versions in groups().items():
        if bool(name) != core:
            found = [_version(name, version, served) for version, served in versions.items()]
            items.append({"metadata": {"name": name, "creationTimestamp": None}, "versions": found})
    for name, others in () if core else _OTHERS.items():
        resources = [_entry(plural, kind, name, "v1", "Cluster", verbs, short) for plural, kind, verbs, short in others]
        version = {"version": "v1", "resources": resources, "freshness": "Current"}
        items.append({"metadata": {"name": name, "creationTimestamp": None}, "versions": [version]})
    return {"kind": "APIGroupDiscoveryList", "metadata": {}, "items": items}


def _version(group: str, version: str, served: Sequence[Resource]) -> dict[str, Any]:
    entries = []
    for resource in served:
        scope = "Namespaced" if resource.namespaced else "Cluster"
        entry = _entry(resource.plural, resource.kind, group, version, scope, verbs_of(resource), resource.short_names)
        kind = {"group": group, "version": version, "kind": resource.kind}
        names = subresources_of(resource)
        if names:
            entry["subresources"] = [{"subresource": name, "responseKind": kind, "verbs": ["get"]} for name in names]
        entries.append(entry)
    return {"version": version, "resources": entries, "freshness": "Current"}


def _entry(
    plural: str, kind: str, group: str, version: str, scope: str, verbs: Sequence[str], short_names: Sequence[str]
) -> dict[str, Any]:
    return {
        "resource": plural,
        "responseKind": {"group": group, "version": version, "kind": kind},
        "scope": scope,
        "singularResource": kind.lower(),
        "verbs": list(verbs),
        **_short(short_names),
    }


def _short(names: Sequence[str]) -> dict[str, list[str]]:
    """Return the field of short names, which both forms leave out where there are none."""
    return {"shortNames": list(names)} if names else {}
