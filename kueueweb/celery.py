"""The Celery app. One worker of the queue `scheduler` decides; workers of the queue `push` do everything else."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kueueweb.settings")

app = Celery("kueueweb")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
# The current app is per thread: without a default one, a web thread would send to an app that has no broker.
app.set_default()
