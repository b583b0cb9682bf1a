"""The processes that make up kueueweb, on one machine: apart, as docker-compose.yml starts them, or with several roles
in one, as the demo does."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from simulation.fleet import FLEETS, WEST


@dataclass(frozen=True, slots=True)
class Process:
    """A name for logs, and the command without its environment."""

    name: str
    command: tuple[str, ...]


def seed(fleet: str = FLEETS[0], west_port: int | None = None) -> Process:
    """Return the process that creates tables, queues and accounts, and ends. `west_port`: of the second cluster."""
    west = () if west_port is None else ("--west-url", f"http://127.0.0.1:{west_port}")
    return Process("seed", _manage("demo_seed", "--fleet", fleet, *west))


def past(fleet: str, time_scale: float) -> Process:
    """Return the process that writes ten days of history, and ends."""
    return Process("past", _manage("demo_past", "--fleet", fleet, "--time-scale", f"{time_scale:g}"))


def second_cluster(port: int, time_scale: float, snapshot: Path) -> list[Process]:
    """Return the processes of the cluster that runs jobs of the first one."""
    where = ("--port", str(port), "--time-scale", f"{time_scale:g}", "--snapshot", str(snapshot))
    return [
        Process("west-cluster", _manage("simulated_cluster", *where, "--fleet", WEST, "--kueue-kinds")),
        Process("west-watcher", _manage("watch_cluster", "--cluster", WEST)),
    ]


def processes(
    *,
    host: str,
    port: int,
    cluster_port: int,
    time_scale: float,
    snapshot: Path,
    fleet: str = FLEETS[0],
    webhook_port: int | None = None,
    together: bool = False,
) -> list[Process]:
    """Return the processes that run until they are stopped, in the order of their start.

    With a port for it, the simulated cluster calls the admission webhook, as a real cluster does. `together`: whether
    one process has the roles of scheduler, push, watcher and beat.
    """
    scale = f"{time_scale:g}"
    cluster = ("--port", str(cluster_port), "--time-scale", scale, "--snapshot", str(snapshot), "--fleet", fleet)
    simulated_cluster = Process("simulated-cluster", _manage("simulated_cluster", *cluster))
    return [
        Process("web", _web(host, port)),
        *([simulated_cluster, Process("run", _manage("run"))] if together else _apart(simulated_cluster)),
        Process("studio", _manage("studio")),
        *([] if webhook_port is None else [_webhook(webhook_port)]),
        Process(
            "jobs",
            _manage("demo_jobs", "--server", f"http://127.0.0.1:{port}", "--time-scale", scale, "--fleet", fleet),
        ),
    ]


def _apart(simulated_cluster: Process) -> list[Process]:
    return [
        Process("scheduler", _worker("scheduler", "--pool", "solo")),
        simulated_cluster,
        Process("push", _worker("push", "--pool", "threads", "--concurrency", "4")),
        Process("watcher", _manage("watch_cluster", "--cluster", "default")),
        Process("beat", _celery("beat")),
    ]


def environment(
    base: Mapping[str, str], *, database_url: str, redis_url: str, secret_key: str, cluster_port: int
) -> dict[str, str]:
    """Return the environment that all processes share."""
    return {
        **base,
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        "SECRET_KEY": secret_key,
        "KUBERNETES_API_URL": f"http://127.0.0.1:{cluster_port}",
        "WEBHOOK_TRUSTED_USERS": "kueueweb",  # the simulated cluster's name for our client
        "DEMO": "true",
        "SERVE_UNCOLLECTED_STATIC": "true",
        "PYTHONUNBUFFERED": "1",
    }


def _manage(*arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "kueueweb", *arguments)


def _celery(*arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "celery", "--app", "kueueweb", *arguments, "--loglevel", "INFO")


def _worker(queue: str, *arguments: str) -> tuple[str, ...]:
    # Workers need not know each other: queue and lease assign the work.
    alone = ("--without-gossip", "--without-mingle", "--without-heartbeat")
    return _celery("worker", "--queues", queue, "--hostname", f"{queue}@%h", *alone, *arguments)


def _webhook(port: int) -> Process:
    where = ("--host", "127.0.0.1", "--port", str(port), "--url", f"https://127.0.0.1:{port}")
    # Its certificates lie in a namespace that the simulated cluster has from the start.
    return Process("webhook", _manage("webhook", "--cluster", "default", "--namespace", "kube-system", *where))


def _web(host: str, port: int) -> tuple[str, ...]:
    # An open page's socket would keep it alive forever.
    return _manage("serve", "--host", host, "--port", str(port), "--grace-seconds", "2")
