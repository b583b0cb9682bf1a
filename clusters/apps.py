from django.apps import AppConfig


class ClustersConfig(AppConfig):
    name = "clusters"

    def ready(self) -> None:
        """Has jobs of the kinds that operators bring read and permitted wherever jobs are."""
        from accounts.services.access import SUBMITTABLE_KINDS
        from clusters.jobs.reading import reader_of
        from clusters.jobs.running import OPERATED_KINDS
        from queues.manifests.job_workloads import JOB_READERS

        for rules in OPERATED_KINDS:
            JOB_READERS[rules.api_version, rules.kind] = reader_of(rules)
            SUBMITTABLE_KINDS.add(rules.kind)
