"""`manage.py studio`: try users' questions with scheduling cycles, each in a child process on a copy of the cluster."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from foundation.garbage_collection import calm_the_collector
from foundation.migrated import wait_until_migrated
from studio.services.children import Limits
from studio.services.process import Studio, default_children, stop_on_signals


class Command(BaseCommand):
    """Runs until SIGINT or SIGTERM."""

    help = "Try users' questions with scheduling cycles, each in a child process on a copy of the cluster."
    requires_system_checks = []  # `migrate` and `serve` make them; here they would load every view

    def handle(self, *args: Any, **options: Any) -> None:
        wait_until_migrated()
        children = settings.STUDIO_CHILDREN or default_children()
        studio = Studio(Limits(settings.STUDIO_SECONDS, settings.STUDIO_MEMORY_MIB), children)
        stop_on_signals(studio.stop)
        calm_the_collector()
        self.stdout.write(f"studio {studio.id} tries at most {children} at a time")
        self.stdout.flush()
        studio.run()
