"""Addresses: the API and the admin; all else is the front end's. `kueueweb.web` has answered the probes before."""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path, re_path
from django.views.decorators.csrf import csrf_exempt
from drf_spectacular.views import SpectacularAPIView
from rest_framework.permissions import IsAuthenticated

from accounts.api import oidc
from kueueweb.api import admin_manifests, errors, frontend
from kueueweb.api.admin_login import admin_login
from kueueweb.api.docs import api_docs
from kueueweb.api.index_views import ApiIndexView, VersionIndexView
from kueueweb.api.preview import PreviewView
from scheduler.api.metrics.views import MetricsView

_api: list[URLPattern | URLResolver] = [
    path("", include("accounts.api.urls")),
    path("schema/", SpectacularAPIView.as_view(permission_classes=[IsAuthenticated]), name="schema"),
    path("docs/", api_docs),
    path("preview/", PreviewView.as_view()),
    path("", include("queues.api.urls")),
    path("", include("gpus.api.urls")),
    path("", include("scheduler.api.urls")),
    path("", include("history.api.urls")),
    path("", include("notifications.api.urls")),
    path("", include("studio.api.urls")),
    path("", include("clusters.api.urls")),
]

urlpatterns: list[URLPattern | URLResolver] = [
    path("api/", ApiIndexView.as_view()),
    path("api/v1/", VersionIndexView.as_view()),
    path("api/v1/", include(_api)),
    path("admin/login/", admin_login),
    path("admin/manifests/", admin.site.admin_view(admin_manifests.manifests), name="admin-manifests"),
    path(
        "admin/manifests/<str:model>/<int:key>/", admin.site.admin_view(admin_manifests.manifest), name="admin-manifest"
    ),
    path("admin/", admin.site.urls),
    path("oidc/login/", oidc.begin),
    path("oidc/callback/", oidc.finish, name="oidc-callback"),
    path("metrics", MetricsView.as_view()),
    path("", include("kueueweb.wire.urls")),
    # No CSRF check: a client that forgot the slash of a POST would be told of a token that it does not need.
    re_path(r"^(?:api|ws|static|admin|oidc)(?:/|$)", csrf_exempt(errors.not_found), name=errors.NOWHERE),
    re_path(r"", frontend.index),
]

admin.site.site_header = admin.site.site_title = "kueueweb"
admin.site.index_title = "Configuration and records"

handler400 = errors.bad_request
handler403 = errors.forbidden
handler404 = errors.not_found
handler500 = errors.server_error
