"""The addresses of Kubernetes' wire format: without a prefix for the cluster `default`, else below its name.

None of them ends in a slash, and all of REST's do: which distinguishes `/api/v1/namespaces` from `/api/v1/namespaces/`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from django.urls import URLPattern, path, re_path

from clusters.served.pending_workloads import GROUP, PENDING_WORKLOADS, QUEUES, VERSIONS
from kueueweb.wire import definitions
from kueueweb.wire import discovery_views as discovery
from kueueweb.wire.object_views import ListView, ObjectView, ResourceView, StatusView
from kueueweb.wire.observed.pod_log_views import PodLogView
from kueueweb.wire.openapi_views import (
    DefinitionsView,
    DefinitionView,
    OpenApiVersionView,
    OpenApiView,
    SwaggerView,
)
from kueueweb.wire.pending_views import PendingWorkloadsView
from kueueweb.wire.resources import RESOURCES, Resource
from kueueweb.wire.reviews import AccessReviewView, RulesReviewView, SubjectReviewView

PREFIX = "kubernetes/<str:cluster>/"
_SUBRESOURCES: Mapping[str, type[ResourceView]] = {"log": PodLogView}
"""Subresource -> its view."""


def _of(resource: Resource, version: str) -> Iterator[tuple[str, type[ResourceView]]]:
    common = {"kind": resource.kind, "resource": resource, "version": version}
    listed = type(f"{resource.kind}{version}List", (ListView,), common)
    single = type(f"{resource.kind}{version}", (ObjectView,), common)
    base = resource.address(version)
    yield f"{base}/{resource.plural}", listed
    within = f"{base}/namespaces/<str:namespace>" if resource.namespaced else base
    if resource.namespaced:
        yield f"{within}/{resource.plural}", listed
    yield f"{within}/{resource.plural}/<str:name>", single
    if resource.has_status:
        status = type(f"{resource.kind}{version}Status", (StatusView,), common)
        yield f"{within}/{resource.plural}/<str:name>/status", status
    for name in resource.subresources:
        view = type(f"{resource.kind}{version}{name}", (_SUBRESOURCES[name],), common)
        yield f"{within}/{resource.plural}/<str:name>/{name}", view


ADDRESSES: dict[str, type[ResourceView]] = {
    address: view for resource in RESOURCES for version in resource.versions for address, view in _of(resource, version)
}
"""The addresses of objects, without the prefix of a cluster."""


def _pending() -> Iterator[tuple[str, type[PendingWorkloadsView]]]:
    for version in VERSIONS:
        for plural, kind, namespaced in QUEUES:
            view = type(f"{kind}{version}Pending", (PendingWorkloadsView,), {"plural": plural, "version": version})
            base = f"apis/{GROUP}/{version}"
            within = f"{base}/namespaces/<str:namespace>" if namespaced else base
            yield f"{within}/{plural}/<str:name>/{PENDING_WORKLOADS}", view


PENDING_ADDRESSES: dict[str, type[PendingWorkloadsView]] = dict(_pending())
"""The addresses of pending workloads, without the prefix of a cluster."""


def _patterns(prefix: str) -> Iterator[URLPattern]:
    yield path(f"{prefix}api", discovery.CoreVersionsView.as_view())
    yield path(f"{prefix}api/<str:version>", discovery.ResourcesView.as_view())
    yield path(f"{prefix}apis", discovery.GroupsView.as_view())
    yield path(f"{prefix}apis/<str:group>", discovery.GroupView.as_view())
    yield path(f"{prefix}apis/<str:group>/<str:version>", discovery.ResourcesView.as_view())
    yield path(f"{prefix}version", discovery.VersionView.as_view())
    yield path(f"{prefix}openapi/v2", SwaggerView.as_view())
    defined = f"{prefix}apis/{definitions.GROUP}/{definitions.VERSION}/{definitions.PLURAL}"
    yield path(defined, DefinitionsView.as_view())
    yield path(f"{defined}/<str:name>", DefinitionView.as_view())
    yield path(f"{prefix}openapi/v3", OpenApiView.as_view())
    yield path(f"{prefix}openapi/v3/<path:address>", OpenApiVersionView.as_view())
    for review, view in (
        ("authorization.k8s.io/v1/selfsubjectaccessreviews", AccessReviewView),
        ("authorization.k8s.io/v1/selfsubjectrulesreviews", RulesReviewView),
        ("authentication.k8s.io/v1/selfsubjectreviews", SubjectReviewView),
    ):
        yield path(f"{prefix}apis/{review}", view.as_view())
    for address, found in (*ADDRESSES.items(), *PENDING_ADDRESSES.items()):
        yield path(f"{prefix}{address}", found.as_view())


urlpatterns = [
    *_patterns(""),
    *_patterns(PREFIX),
    re_path(r"^kubernetes/(?P<cluster>[^/]+)/", discovery.MissingView.as_view()),
    re_path(r"^(?:apis|version|openapi)(?:/|$)", discovery.MissingView.as_view()),
]
