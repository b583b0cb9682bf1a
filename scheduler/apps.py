from django.apps import AppConfig


class SchedulerConfig(AppConfig):
    name = "scheduler"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from accounts.services.object_status import STATUS_READERS
        from scheduler.api.object_status import cluster_queue_statuses, cohort_statuses, local_queue_statuses
        from scheduler.live.rights import connect_signals

        connect_signals()
        STATUS_READERS["ClusterQueue"] = cluster_queue_statuses
        STATUS_READERS["LocalQueue"] = local_queue_statuses
        STATUS_READERS["Cohort"] = cohort_statuses
