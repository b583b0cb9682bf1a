from django.apps import AppConfig


class GpusConfig(AppConfig):
    name = "gpus"
    verbose_name = "GPUs"
    default_auto_field = "django.db.models.BigAutoField"
