"""`manage.py demo_jobs`: jobs of the demo's tenants, for as long as it runs."""

import signal
import threading
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from kueueweb.demo.arrivals import FIRST_JOBS, MAX_WAITING
from kueueweb.demo.submission import Submission, keep_submitting
from simulation.fleet import FLEETS


class Command(BaseCommand):
    """Submits over REST; it needs no database."""

    help = "Submit jobs of the demo's tenants over REST, sized as in the trace openb, until stopped."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--server", default="http://127.0.0.1:8000", help="address of kueueweb (default: %(default)s)"
        )
        parser.add_argument("--time-scale", type=float, default=10.0, help="how fast jobs run (default: %(default)s)")
        parser.add_argument("--first", type=int, default=FIRST_JOBS, help="jobs to start with (default: %(default)s)")
        parser.add_argument(
            "--max-waiting",
            type=int,
            default=MAX_WAITING,
            help="stop submitting to a queue while this many jobs wait in it (default: %(default)s)",
        )
        parser.add_argument(
            "--fleet", choices=FLEETS, default=FLEETS[0], help="fleet that the jobs are for (default: %(default)s)"
        )
        parser.add_argument("--seed", type=int, default=None, help="seed, to repeat the same jobs")

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.DEMO:
            raise CommandError("This command uses the demo's accounts. Set DEMO=true to allow it.")
        passwords = {account["username"]: account["password"] for account in settings.DEMO_ACCOUNTS}
        submission = Submission(
            options["server"],
            passwords,
            time_scale=options["time_scale"],
            max_waiting=options["max_waiting"],
            seed=options["seed"],
            fleet=options["fleet"],
            cluster=settings.KUBERNETES_API_URL,
        )
        stop = threading.Event()
        for wish in (signal.SIGINT, signal.SIGTERM):
            signal.signal(wish, lambda *_: stop.set())
        keep_submitting(submission, options["first"], stop.wait)
