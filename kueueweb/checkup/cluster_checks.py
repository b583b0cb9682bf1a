"""A cluster: whether its API server answers, our permissions, the kinds that it serves, and its schedulers."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from typing import Final

from accounts.models import Cluster
from clusters.api_errors import ClusterError
from clusters.api_objects import PODS, JsonObject, Kind
from clusters.client import ClusterClient
from clusters.jobs.registry import JOB_KINDS
from clusters.served.kueue_kinds import GROUP, KUEUE_KINDS
from kueueweb.checkup.finding import Finding, clock, fail, ok, warn
from kueueweb.checkup.role_manifests import ACCOUNTS, Right, rights_of

_ACCESS_REVIEWS: Final = Kind(
    "authorization.k8s.io/v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False
)
_SUBJECT_REVIEWS: Final = Kind("authentication.k8s.io/v1", "SelfSubjectReview", "selfsubjectreviews", namespaced=False)
_ACCOUNT: Final = re.compile(r"system:serviceaccount:(?P<namespace>[^:]+):(?P<name>.+)")
_NAMED: Final = 5
_THREADS: Final = 8
_FILES: Final = {"kueueweb-read": "rbac.yaml", "kueueweb-locks": "rbac.yaml", "kueueweb-push-lease": "rbac.yaml",
    "kueueweb-tenant": "tenant.yaml", "kueueweb-logs": "tenant.yaml", "kueueweb-suspend": "tenant.yaml",
    "kueueweb-observe": "observer.yaml", "kueueweb-serve": "served.yaml", "kueueweb-convert": "served.yaml",
    "kueueweb-webhook": "webhook.yaml"}  # fmt: skip
_OTHERS: Final = (("kueue", "app.kubernetes.io/name=kueue"), ("hami", "app.kubernetes.io/name=hami"))
_SECONDS: Final = 1.0
"""The precision of the Date of an answer."""


def cluster_checks(cluster: Cluster, client: ClusterClient, tenants: Sequence[str]) -> Iterator[Finding]:
    """Yield the findings of one cluster; only the first if its API server does not answer.

    * tenants: the namespaces that jobs run in.
    """
    try:
        ours = datetime.now(UTC)
        version, time = client.server_version()
        took = (datetime.now(UTC) - ours).total_seconds()
        groups = client.groups()
    except ClusterError as error:
        remedy = "Compare the cluster's server_url, KUBERNETES_API_URL or the kubeconfig with the API server's address."
        yield fail(f"cluster/{cluster.name}", f"the API server does not answer: {error}", remedy)
        return
    yield ok(f"cluster/{cluster.name}", f"Kubernetes {version}")
    if time is not None:
        yield clock(f"cluster-clock/{cluster.name}", time, ours, precision_seconds=took + _SECONDS)
    yield from _guarded(f"rights/{cluster.name}", partial(_rights, cluster, client, tenants))
    yield from _kinds(cluster, groups)
    yield from _guarded(f"schedulers/{cluster.name}", partial(_schedulers, cluster, client))


def _guarded(check: str, checks: partial[Iterator[Finding]]) -> Iterator[Finding]:
    try:
        yield from checks()
    except ClusterError as error:
        yield warn(check, f"not known: {error}", "Check which account this process has in the cluster.")


def _rights(cluster: Cluster, client: ClusterClient, tenants: Sequence[str]) -> Iterator[Finding]:
    check = f"rights/{cluster.name}"
    user, namespace, accounts = _who(client)
    files = ["rbac.yaml", "observer.yaml"]
    if not cluster.is_mirrored:
        files += ["tenant.yaml", "webhook.yaml", *(["served.yaml"] if cluster.serves_kueue_objects else [])]
    wanted = {
        right: None
        for account in accounts
        for right in rights_of(account, files, own_namespace=namespace, tenants=tenants)
        if not (cluster.is_mirrored and right.role == "kueueweb-locks")
    }
    missing = _missing(client, list(wanted))
    yield ok(check, f"{user}: {len(wanted) - len(missing)} of {len(wanted)} permissions that our roles name")
    by_role: defaultdict[tuple[str, str], list[Right]] = defaultdict(list)
    for right in missing:
        by_role[right.role, right.namespace].append(right)
    for (role, where), rights in sorted(by_role.items()):
        named = ", ".join(str(each) for each in rights[:_NAMED]) + (" ..." if len(rights) > _NAMED else "")
        said = f"{role}{f' in {where}' if where else ''}: missing permissions ({len(rights)}): {named}"
        into = f" --namespace {where}" if _FILES.get(role) == "tenant.yaml" else ""
        yield fail(
            check, said, f"kubectl{into} apply -f deploy/kubernetes/{_FILES.get(role, 'rbac.yaml')}, or helm upgrade."
        )


def _who(client: ClusterClient) -> tuple[str, str, Sequence[str]]:
    """Return our name in the cluster, the namespace of the installation, and which of our accounts this one is: all of
    them where one account does everything."""
    answer = client.create(_SUBJECT_REVIEWS, _review(_SUBJECT_REVIEWS))
    user = str(answer["status"]["userInfo"]["username"])
    found = _ACCOUNT.fullmatch(user)
    if found and found["name"] in ACCOUNTS:
        return user, found["namespace"], (found["name"],)
    return user, "kueueweb", ACCOUNTS


def _missing(client: ClusterClient, rights: Sequence[Right]) -> list[Right]:
    with ThreadPoolExecutor(_THREADS) as pool:
        allowed = list(pool.map(partial(_allowed, client), rights))
    return [right for right, may in zip(rights, allowed, strict=True) if not may]


def _allowed(client: ClusterClient, right: Right) -> bool:
    resource, _, subresource = right.resource.partition("/")
    asked = {
        "namespace": right.namespace, "verb": right.verb, "group": right.group, "resource": resource,
        "subresource": subresource, "name": right.name,
    }  # fmt: skip
    attributes = {key: value for key, value in asked.items() if value}
    review = {**_review(_ACCESS_REVIEWS), "spec": {"resourceAttributes": attributes}}
    return bool(client.create(_ACCESS_REVIEWS, review)["status"]["allowed"])


def _review(kind: Kind) -> JsonObject:
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {}}


def _kinds(cluster: Cluster, groups: dict[str, list[str]]) -> Iterator[Finding]:
    """Yield the served kinds of jobs, those served only in an unsupported version, and Kueue's definitions."""
    check = f"definitions/{cluster.name}"
    served: set[str] = set()
    for kind in JOB_KINDS.values():
        versions = groups.get(kind.group)
        if versions is None:
            continue
        if kind.version in versions:
            served.add(f"{kind.group}/{kind.version}")
        else:
            yield warn(
                check, f"{kind.plural}.{kind.group} is served as {', '.join(versions)}, but we read {kind.version}",
                f"Install a release of its operator that serves {kind.version}; until then its jobs are ignored.",
            )  # fmt: skip
    yield ok(check, "jobs of " + ", ".join(sorted(served - {"batch/v1", "apps/v1"}) or ["Kubernetes only"]))
    needs = cluster.is_mirrored or cluster.serves_kueue_objects
    wanted = {kinds[0].api_version.partition("/")[2] for kinds in KUEUE_KINDS.values()}
    if needs and not wanted <= set(groups.get(GROUP, ())):
        yield fail(
            check, f"{GROUP}/{min(wanted)} is not served: versions are {', '.join(groups.get(GROUP, ())) or 'none'}",
            "Install the CRDs of a Kueue that has it.",
        )  # fmt: skip


def _schedulers(cluster: Cluster, client: ClusterClient) -> Iterator[Finding]:
    """Yield the releases of Kueue and HAMi whose pods run in the cluster."""
    for name, selector in _OTHERS:
        check = f"{name}/{cluster.name}"
        try:
            pods = client.list(PODS, label_selector=selector).items
        except ClusterError as error:
            if error.status != HTTPStatus.FORBIDDEN:
                raise
            yield ok(check, "not checked: this account cannot list pods")
            continue
        images = sorted({_tag(image) for pod in pods for image in _images(pod)})
        if not pods:
            yield ok(check, "none of its pods runs here")
        elif name == "kueue" and not cluster.is_mirrored:
            yield warn(
                check,
                f"{', '.join(images)} runs, and kueueweb decides, too",
                "Stop one of the two (docs/switching.md).",
            )
        else:
            yield ok(check, f"{', '.join(images)} in {len(pods)} pods")


def _images(pod: dict[str, object]) -> Iterable[str]:
    spec = pod.get("spec")
    containers = spec.get("containers") or () if isinstance(spec, dict) else ()
    return (str(container.get("image", "")) for container in containers)


def _tag(image: str) -> str:
    return image.rpartition("/")[2].partition("@")[0]
