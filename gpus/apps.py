from django.apps import AppConfig


class GpusConfig(AppConfig):
    name = "gpus"
    default_auto_field = "django.db.models.BigAutoField"
