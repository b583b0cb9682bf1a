from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig


class ClustersConfig(AppConfig):
    name = "clusters"

    def ready(self) -> None:
        """Register the kinds of jobs with the apps below, which do not import this one, and the readers of statuses."""
        from accounts.kinds.frameworks import register_framework
        from accounts.services.access import SUBMITTABLE_KINDS
        from accounts.services.object_status import STATUS_READERS
        from clusters.jobs.framework.job_kind import Stopping
        from clusters.jobs.live_groups import preview_submitted, settle_submitted
        from clusters.jobs.reading import reader_of
        from clusters.jobs.registry import JOB_KINDS
        from clusters.jobs.submitted_jobs import pass_over_submission
        from clusters.multikueue.status import worker_statuses
        from queues.manifests.job_workloads import JOB_READERS
        from queues.manifests.pod_group import POD_GROUP
        from queues.services.job_passes import JOB_PASSES
        from queues.services.pod_groups.life import GROUP_PASSES, GroupPass

        STATUS_READERS["MultiKueueCluster"] = worker_statuses
        STATUS_READERS["AdmissionCheck"] = _check_statuses
        GROUP_PASSES[POD_GROUP] = GroupPass(preview_submitted, settle_submitted)

        for kind in JOB_KINDS.values():
            JOB_READERS[kind.api_version, kind.kind] = reader_of(kind)
            SUBMITTABLE_KINDS.add(kind.kind)
            if kind.has_workload:
                JOB_PASSES[kind.kind] = pass_over_submission
                register_framework(kind.api_version, kind.kind, gates_pods=kind.stopping is Stopping.DELETE_PODS)


def _check_statuses(cluster: Any, rows: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the status of each check, which has one controller, possibly kueueweb's own."""
    from clusters.multikueue.status import check_statuses
    from clusters.push.check_status import admission_check_statuses

    both = zip(check_statuses(cluster, rows), admission_check_statuses(cluster, rows), strict=True)
    return [by_multikueue or by_provisioning for by_multikueue, by_provisioning in both]
