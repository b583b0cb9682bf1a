"""`manage.py demo_jobs`: jobs of the demo's tenants, for as long as it runs."""

import signal
import threading
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from clusters.simulated.fleet import FLEETS
from kueueweb.demo.arrivals import FIRST_JOBS, MAX_WAITING
from kueueweb.demo.submission import Submission, keep_submitting


class Command(BaseCommand):
    """Submits over REST; it needs no database."""

    help = "Submit jobs of the demo's tenants over REST, sized as in the trace openb, until it is stopped."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--server", default="http://127.0.0.1:8000", help="where kueueweb is (default: %(default)s)"
        )
        parser.add_argument(
            "--time-scale", type=float, default=10.0, help="the simulated cluster's (default: %(default)s)"
        )
        parser.add_argument("--first", type=int, default=FIRST_JOBS, help="jobs to begin with (default: %(default)s)")
        parser.add_argument(
            "--max-waiting",
            type=int,
            default=MAX_WAITING,
            help="no more for a queue while so many wait in it (default: %(default)s)",
        )
        parser.add_argument("--fleet", choices=FLEETS, default=FLEETS[0], help="for which nodes (default: %(default)s)")
        parser.add_argument("--seed", type=int, default=None, help="for the same jobs again")

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.DEMO:
            raise CommandError("This submits as the demo's accounts. Set DEMO=true to allow it.")
        passwords = {account["username"]: account["password"] for account in settings.DEMO_ACCOUNTS}
        submission = Submission(
            options["server"],
            passwords,
            time_scale=options["time_scale"],
            max_waiting=options["max_waiting"],
            seed=options["seed"],
            fleet=options["fleet"],
        )
        stop = threading.Event()
        for wish in (signal.SIGINT, signal.SIGTERM):
            signal.signal(wish, lambda *_: stop.set())
        keep_submitting(submission, options["first"], stop.wait)
