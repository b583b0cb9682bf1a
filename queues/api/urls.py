"""The addresses of queues."""

from django.urls import path

from queues.api import action_views, workload_views

_WORKLOAD = "workloads/<str:namespace>/<str:name>/"

urlpatterns = [
    path("workloads/", workload_views.WorkloadsView.as_view()),
    path("workloads/cancel/", action_views.BulkCancelView.as_view()),
    path("workloads/finish/", action_views.BulkFinishView.as_view()),
    path("workloads/hold/", action_views.BulkHoldView.as_view()),
    path("workloads/release/", action_views.BulkReleaseView.as_view()),
    path(_WORKLOAD, workload_views.WorkloadView.as_view()),
    path(f"{_WORKLOAD}cancel/", action_views.CancelView.as_view()),
    path(f"{_WORKLOAD}events/", workload_views.WorkloadEventsView.as_view()),
    path(f"{_WORKLOAD}hold/", action_views.HoldView.as_view()),
    path(f"{_WORKLOAD}priority/", action_views.PriorityView.as_view()),
    path(f"{_WORKLOAD}release/", action_views.ReleaseView.as_view()),
]
