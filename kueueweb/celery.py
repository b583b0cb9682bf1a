"""The Celery app. One worker of the queue `scheduler` decides; workers of the queue `push` do everything else."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kueueweb.settings")

app = Celery("kueueweb")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.set_default()  # the current app is per thread; without a default, a web thread would send to an app without a broker
