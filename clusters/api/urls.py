"""The addresses of manifests, nodes and pods."""

from django.urls import path

from clusters.api import cluster_object_views, manifest_views, node_views, pod_views

urlpatterns = [
    path("manifests/", manifest_views.ManifestsView.as_view()),
    path("manifests/<str:kind>/", manifest_views.KindManifestsView.as_view()),
    path("manifests/<str:kind>/<str:name>/", manifest_views.ManifestView.as_view()),
    path("manifests/<str:kind>/<str:namespace>/<str:name>/", manifest_views.NamespacedManifestView.as_view()),
    path("nodes/", node_views.NodeListView.as_view()),
    path("nodes/<str:name>/", node_views.NodeView.as_view()),
    path("nodes/<str:name>/pods/", node_views.NodePodsView.as_view()),
    path("published-devices/", cluster_object_views.PublishedDevicesView.as_view()),
    path("served-objects/problems/", cluster_object_views.ServedObjectProblemsView.as_view()),
    path("workloads/<str:namespace>/<str:name>/pods/", pod_views.WorkloadPodsView.as_view()),
    path("workloads/<str:namespace>/<str:name>/pods/<str:pod>/log/", pod_views.PodLogView.as_view()),
]
