"""The project's own app: it contains the demo command, and makes its Celery app the current one."""

from typing import Final

from django.apps import AppConfig, apps

_SECTIONS: Final = {"auth": "Users and groups", "knox": "API tokens"}
"""The admin's titles for apps of other packages."""


class KueuewebConfig(AppConfig):
    name = "kueueweb"

    def ready(self) -> None:
        from kueueweb import celery  # noqa: F401 (makes the configured app current, so that send_task finds the broker)

        for label, words in _SECTIONS.items():
            apps.get_app_config(label).verbose_name = words
