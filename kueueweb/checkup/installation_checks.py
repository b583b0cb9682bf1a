"""The settings of this process, and the processes that work behind the pages."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from django.conf import settings
from django.core.checks import ERROR, run_checks
from django.utils import timezone

from accounts.models import AuditFinding, Cluster
from foundation.heartbeat import Role, role_health
from foundation.redis_client import redis_client
from kueueweb.checkup.finding import Finding, fail, ok, warn
from queues.models import Workload
from scheduler.api.diagnostics_views import held_off_by
from scheduler.live.published import leads
from scheduler.models import Lease

_CONNECT = "See the log of the push for the cluster's answer; check its address, credentials and network."
_START = "Start it, or check its log: it sends a heartbeat every 5 s."


def settings_checks() -> Iterator[Finding]:
    """Yield the findings about the variables. Unreadable variables have stopped the process before."""
    errors = [each for each in run_checks() if each.level >= ERROR]
    for each in errors:
        yield fail("settings", f"{each.id}: {each.msg}", each.hint or "Change the setting that it names.")
    if settings.DEBUG:
        yield warn("settings-debug", "DEBUG is true: error pages show the source code", "Unset DEBUG.")
    if settings.DEMO:
        yield warn("settings-demo", "DEMO is true: accounts have public passwords", "Unset DEMO.")
    if not settings.SESSION_COOKIE_SECURE:
        yield warn(
            "settings-tls",
            "cookies are sent over plain HTTP",
            "Set BEHIND_TLS_PROXY and TRUSTED_PROXIES, or SECURE_COOKIES.",
        )
    examples = [host for host in settings.ALLOWED_HOSTS if host.endswith(("example.org", "example.com"))]
    if examples:
        yield warn(
            "settings-hosts", f"ALLOWED_HOSTS has {examples[0]}", "Set the host names at which users reach the pages."
        )
    if not errors:
        yield ok("settings", f"release {settings.RELEASE}")


def process_checks(clusters: Sequence[Cluster]) -> Iterator[Finding]:
    """Yield whether each role is alive, and whether each cluster has a leader."""
    redis_client().ping()
    for each in role_health([cluster.name for cluster in clusters], time.time()):
        if each.role == Role.API_SERVER:
            continue  # another check asks it
        check = f"process-{each.role}" + (f"/{each.cluster}" if each.cluster else "")
        seen = each.last_seen_at
        if each.role == Role.CLUSTER_PUSH:
            if not each.alive:
                yield fail(check, "its cluster does not answer, or lets no sweep end", _CONNECT)
        elif each.alive and each.clock_fault:
            yield fail(check, each.clock_fault, "Set the clocks of all machines by NTP.")
        elif each.alive:
            yield ok(check, "alive")
        elif seen is None:
            yield fail(check, "no process of this role has sent a heartbeat", _START)
        else:
            yield fail(check, f"silent for {(timezone.now() - seen).total_seconds():.0f} s", _START)


def engine_checks(cluster: Cluster) -> Iterator[Finding]:
    """Yield the scheduler that decides for the cluster, the decisions not pushed to it, and the auditor's findings."""
    lease = Lease.objects.filter(cluster=cluster).first()
    check = f"leader/{cluster.name}"
    if leads(lease):
        yield ok(check, f"{lease.holder if lease else ''} in epoch {lease.epoch if lease else 0}")
    elif cluster.is_mirrored:
        yield ok(check, f"mode {cluster.mode}: another scheduler decides")
    else:
        yield fail(check, "no scheduler has renewed its lease for 15 s", "Start a scheduler, or check its log.")
    if holder := held_off_by(cluster):
        yield fail(
            f"installation/{cluster.name}", f"{holder} prevents kueueweb from writing to the cluster",
            "Stop one of the two (docs/switching.md).",
        )  # fmt: skip
    refused = Workload.objects.filter(cluster=cluster).exclude(push_error="").exclude(status="Finished").count()
    if refused:
        yield warn(
            f"push/{cluster.name}", f"the cluster refused the last decision on {refused} workloads",
            "GET workloads/{namespace}/{name}/: push_error has the server's message.",
        )  # fmt: skip
    found = AuditFinding.objects.filter(cluster=cluster, confirmed=True).count()
    if found:
        yield fail(
            f"books/{cluster.name}", f"the auditor found {found} inconsistencies", "Run python manage.py audit-state."
        )
