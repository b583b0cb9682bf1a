"""YAML out of the admin and in: an object as kubectl shows it, edited as text, checked and applied."""

from collections.abc import Callable, Sequence
from typing import Any, cast

from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.views.decorators.http import require_http_methods

from accounts.models import Cluster
from accounts.services.access import clusters_of
from clusters.manifests import apply_manifests, get_manifests, to_yaml
from foundation.exceptions import KueuewebError
from queues.kinds import KINDS
from scheduling.manifest import LocatedError

_BY_MODEL = {kind.model._meta.model_name: kind for kind in KINDS.values()}


@require_http_methods(["GET", "POST"])
def manifest(request: HttpRequest, model: str, key: int) -> HttpResponse:
    """Edit one object as YAML; the submitted text may contain other objects, too."""
    kind = _BY_MODEL.get(model)
    if kind is None:
        raise Http404
    row: Any = get_object_or_404(kind.model, pk=key)
    if row.cluster is None:  # a role binding for all clusters belongs to none
        raise Http404
    if not admin.site.get_model_admin(kind.model).has_view_or_change_permission(request, row):
        raise PermissionDenied
    namespace = row.namespace if kind.namespaced else None

    def read() -> str:
        return to_yaml(get_manifests(row.cluster, kind.name, row.name, namespace))

    return _page(request, f"{kind.name} {row}", row.cluster, read)


@require_http_methods(["GET", "POST"])
def manifests(request: HttpRequest) -> HttpResponse:
    """Submit manifests for one of the clusters, starting from an empty page."""
    clusters = {cluster.name: cluster for cluster in clusters_of(request.user)}
    cluster = clusters.get(request.POST.get("cluster") or next(iter(clusters), ""))
    if cluster is None:
        raise Http404
    return _page(request, "Apply manifests", cluster, None, list(clusters))


def _page(
    request: HttpRequest, title: str, cluster: Cluster, read: Callable[[], str] | None, clusters: Sequence[str] = ()
) -> HttpResponse:
    """`read`: the text of the object that the page is of."""
    text = "" if read is None else read()
    objects: list[str] = []
    errors: list[LocatedError] = []
    checked = request.POST.get("do") == "check"
    if request.method == "POST":
        text = request.POST.get("text", "").replace("\r\n", "\n")
        try:
            done = apply_manifests(cluster, text, user=cast("User", request.user), dry_run=checked)
        except KueuewebError as refusal:
            messages.error(request, refusal.message)
            errors = list(refusal.errors)
        else:
            objects = [f"{found.kind} {found.namespace}/{found.name}: {found.action.value}" for found in done.objects]
            for warning in done.warnings:
                messages.warning(request, warning)
            messages.success(request, "Validated; nothing was stored." if checked else "Applied.")
            if read is not None and not checked:
                text = read()  # its resourceVersion has changed
    context = {
        **admin.site.each_context(request),
        "title": title,
        "cluster": cluster.name,
        "clusters": clusters,
        "text": text,
        "errors": errors,
        "objects": [line.replace(" /", " ") for line in objects],
    }
    return TemplateResponse(request, "admin/manifest.html", context)
