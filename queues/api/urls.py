"""The addresses of queues."""

from collections.abc import Iterator

from django.urls import URLPattern, path

from queues.api import (
    action_views,
    admission_check_views,
    configuration_views,
    count_views,
    job_flow_views,
    quota_cell_views,
    workload_views,
)
from queues.kinds import KINDS

_QUOTAS = "<str:name>/quotas/<str:flavor>/"
_WORKLOAD = "workloads/<str:namespace>/<str:name>/"


def _configuration() -> Iterator[URLPattern]:
    for name, (list_view, view) in configuration_views.VIEWS.items():
        kind = KINDS[name]
        key = "<str:namespace>/<str:name>" if kind.namespaced else "<str:name>"
        yield path(f"{kind.plural}/", list_view.as_view())
        yield path(f"{kind.plural}/{key}/", view.as_view())


urlpatterns = [
    *_configuration(),
    path(f"cluster-queues/{_QUOTAS}", quota_cell_views.ClusterQueueQuotasView.as_view()),
    path(f"cohorts/{_QUOTAS}", quota_cell_views.CohortQuotasView.as_view()),
    path("clusters/", configuration_views.ClusterListView.as_view()),
    path("clusters/<str:name>/", configuration_views.ClusterDetailView.as_view()),
    path("job-flows/", job_flow_views.JobFlowsView.as_view()),
    path("workloads/", workload_views.WorkloadsView.as_view()),
    path("workloads/counts/", count_views.WorkloadCountsView.as_view()),
    path("workloads/cancel/", action_views.BulkCancelView.as_view()),
    path("workloads/finish/", action_views.BulkFinishView.as_view()),
    path("workloads/hold/", action_views.BulkHoldView.as_view()),
    path("workloads/priority/", action_views.BulkPriorityView.as_view()),
    path("workloads/release/", action_views.BulkReleaseView.as_view()),
    path("workloads/requeue/", action_views.BulkRequeueView.as_view()),
    path(_WORKLOAD, workload_views.WorkloadView.as_view()),
    path(f"{_WORKLOAD}admission-checks/<str:check>/", admission_check_views.CheckAnswerView.as_view()),
    path(f"{_WORKLOAD}cancel/", action_views.CancelView.as_view()),
    path(f"{_WORKLOAD}events/", workload_views.WorkloadEventsView.as_view()),
    path(f"{_WORKLOAD}hold/", action_views.HoldView.as_view()),
    path(f"{_WORKLOAD}priority/", action_views.PriorityView.as_view()),
    path(f"{_WORKLOAD}release/", action_views.ReleaseView.as_view()),
    path(f"{_WORKLOAD}requeue/", action_views.RequeueView.as_view()),
]
