"""The project's own app: it holds the demo command and makes its Celery app the current one."""

from django.apps import AppConfig


class KueuewebConfig(AppConfig):
    name = "kueueweb"

    def ready(self) -> None:
        from kueueweb import celery  # noqa: F401 (makes the configured app current, so that send_task finds the broker)
