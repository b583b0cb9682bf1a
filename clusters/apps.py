from django.apps import AppConfig


class ClustersConfig(AppConfig):
    name = "clusters"

    def ready(self) -> None:
        """Register the kinds of jobs wherever jobs are read and permitted."""
        from accounts.services.access import SUBMITTABLE_KINDS
        from accounts.services.object_status import STATUS_READERS
        from clusters.jobs.reading import reader_of
        from clusters.jobs.registry import JOB_KINDS
        from clusters.multikueue.status import check_statuses, worker_statuses
        from queues.manifests.job_workloads import JOB_READERS

        STATUS_READERS["MultiKueueCluster"] = worker_statuses
        STATUS_READERS["AdmissionCheck"] = check_statuses

        for kind in JOB_KINDS.values():
            JOB_READERS[kind.api_version, kind.kind] = reader_of(kind)
            SUBMITTABLE_KINDS.add(kind.kind)
