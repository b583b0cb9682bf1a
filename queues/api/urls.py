"""The addresses of queues."""

from django.urls import path

from queues.api import (
    action_views,
    admission_check_views,
    configuration_views,
    count_views,
    edit_views,
    workload_views,
)

_WORKLOAD = "workloads/<str:namespace>/<str:name>/"

urlpatterns = [
    path("admission-checks/", configuration_views.AdmissionCheckListView.as_view()),
    path("admission-checks/<str:name>/", configuration_views.AdmissionCheckView.as_view()),
    path("clusters/", configuration_views.ClusterListView.as_view()),
    path("clusters/<str:name>/", configuration_views.ClusterDetailView.as_view()),
    path("limit-ranges/", configuration_views.LimitRangeListView.as_view()),
    path("limit-ranges/<str:namespace>/<str:name>/", configuration_views.LimitRangeView.as_view()),
    path("namespaces/", configuration_views.NamespaceListView.as_view()),
    path("namespaces/<str:name>/", configuration_views.NamespaceView.as_view()),
    path("priority-classes/", configuration_views.PriorityClassListView.as_view()),
    path("priority-classes/<str:name>/", configuration_views.PriorityClassView.as_view()),
    path("resource-flavors/", configuration_views.ResourceFlavorListView.as_view()),
    path("resource-flavors/<str:name>/", edit_views.ResourceFlavorView.as_view()),
    path("resource-quotas/", configuration_views.ResourceQuotaListView.as_view()),
    path("resource-quotas/<str:namespace>/<str:name>/", configuration_views.ResourceQuotaView.as_view()),
    path("runtime-classes/", configuration_views.RuntimeClassListView.as_view()),
    path("runtime-classes/<str:name>/", configuration_views.RuntimeClassView.as_view()),
    path("topologies/", configuration_views.TopologyListView.as_view()),
    path("topologies/<str:name>/", configuration_views.TopologyView.as_view()),
    path("workload-priority-classes/", configuration_views.WorkloadPriorityClassListView.as_view()),
    path("workload-priority-classes/<str:name>/", configuration_views.WorkloadPriorityClassView.as_view()),
    path("workloads/", workload_views.WorkloadsView.as_view()),
    path("workloads/counts/", count_views.WorkloadCountsView.as_view()),
    path("workloads/cancel/", action_views.BulkCancelView.as_view()),
    path("workloads/finish/", action_views.BulkFinishView.as_view()),
    path("workloads/hold/", action_views.BulkHoldView.as_view()),
    path("workloads/release/", action_views.BulkReleaseView.as_view()),
    path(_WORKLOAD, workload_views.WorkloadView.as_view()),
    path(f"{_WORKLOAD}admission-checks/<str:check>/", admission_check_views.CheckAnswerView.as_view()),
    path(f"{_WORKLOAD}cancel/", action_views.CancelView.as_view()),
    path(f"{_WORKLOAD}events/", workload_views.WorkloadEventsView.as_view()),
    path(f"{_WORKLOAD}hold/", action_views.HoldView.as_view()),
    path(f"{_WORKLOAD}priority/", action_views.PriorityView.as_view()),
    path(f"{_WORKLOAD}release/", action_views.ReleaseView.as_view()),
]
