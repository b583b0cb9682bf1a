"""The addresses of the scheduler."""

from django.urls import path

from scheduler.api import (
    cluster_overview_views,
    decision_views,
    diagnostics_views,
    flavor_views,
    fragmentation_views,
    headroom_views,
    overview_views,
    queue_views,
    reservation_views,
    sample_views,
    shadow_views,
    user_limit_views,
)

urlpatterns = [
    path("cluster-queues/", queue_views.ClusterQueueListView.as_view()),
    path("cluster-queues/<str:name>/", queue_views.ClusterQueueView.as_view()),
    path("cluster-queues/<str:name>/user-limits/", user_limit_views.UserLimitsView.as_view()),
    path("cluster-overviews/", cluster_overview_views.ClusterOverviewListView.as_view()),
    path("cohorts/", queue_views.CohortListView.as_view()),
    path("cohorts/tree/", queue_views.CohortTreeView.as_view()),
    path("cohorts/<str:name>/", queue_views.CohortView.as_view()),
    path("decisions/", decision_views.DecisionListView.as_view()),
    path("diagnostics/", diagnostics_views.DiagnosticsView.as_view()),
    path("fragmentation/", fragmentation_views.FragmentationView.as_view()),
    path("headroom/", headroom_views.HeadroomsView.as_view()),
    path("local-queues/", queue_views.LocalQueueListView.as_view()),
    path("local-queues/<str:namespace>/<str:name>/", queue_views.LocalQueueView.as_view()),
    path("local-queues/<str:namespace>/<str:name>/headroom/", headroom_views.HeadroomView.as_view()),
    path("overview/", overview_views.OverviewView.as_view()),
    path("reservation-calendar/", reservation_views.ReservationCalendarView.as_view()),
    path("reservation-calendar/preview/", reservation_views.ReservationPreviewView.as_view()),
    path("resource-flavors/", flavor_views.ResourceFlavorListView.as_view()),
    path("resource-flavors/<str:name>/", flavor_views.ResourceFlavorView.as_view()),
    path("shadow/", shadow_views.ShadowView.as_view()),
    path("shadow/differences/", shadow_views.ShadowDifferenceListView.as_view()),
    path("scheduling-cycles/", decision_views.SchedulingCycleListView.as_view()),
    path("workloads/<str:namespace>/<str:name>/moves/", fragmentation_views.MovesView.as_view()),
    path("workloads/<str:namespace>/<str:name>/samples/", sample_views.ContainerSamplesView.as_view()),
]
