from django.apps import AppConfig


class HistoryConfig(AppConfig):
    name = "history"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Let the views of all apps show past rows."""
        from foundation.shown_past import opens_past
        from history.services.checkpoints.past_moments import open_moment

        opens_past(open_moment)
