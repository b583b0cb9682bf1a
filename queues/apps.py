from django.apps import AppConfig


class QueuesConfig(AppConfig):
    name = "queues"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the check for jobs that prevent the deletion of a cluster, and describe the columns of the kinds."""
        from accounts.services.cluster_settings import HANDOVER_CHECKS
        from queues.kinds import KINDS
        from queues.services.workload_objects import jobs_unknown_to_kueue

        HANDOVER_CHECKS.append(jobs_unknown_to_kueue)
        for kind in KINDS.values():
            kind.describe_columns()
