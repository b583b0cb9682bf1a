"""The schedulers that are measured: the real Kueue, and kueueweb's processes."""

from __future__ import annotations

import contextlib
import secrets
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from clusters.api_objects import Kind
from kueueweb.embedded.postgres import Postgres
from kueueweb.embedded.sockets import free_port
from kueueweb.loadtest.processor import seconds_taken
from tests.acceptance.processes import ROOT, Processes, wait_for
from tests.beside_kueue.audited import AuditedServer
from tests.kubernetes.real_kueue import RealKueue, default_configuration, definitions_and_roles, install
from tests.kubernetes.system import documents

_MANAGE: Final = ("-m", "kueueweb")
_START_SECONDS: Final = 300.0
_FILES: Final = ("namespace", "rbac", "observer", "all-tenants")
_RUNS_BESIDE: Final = ("Deployment", "PodDisruptionBudget", "NetworkPolicy", "Ingress")
_KUEUES_ACCOUNT: Final = "system:serviceaccount:kueue-system:"
_OUR_ACCOUNTS: Final = "system:serviceaccount:kueueweb:"
_ACCOUNTS: Final = Kind("v1", "ServiceAccount", "serviceaccounts")
_BINDINGS: Final = Kind("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False)


@dataclass(frozen=True, slots=True)
class DeciderContext:
    """A control plane, a folder that does not exist yet, Kueue's checkout and its program."""

    plane: AuditedServer
    folder: Path
    source: Path
    program: Path


@dataclass(frozen=True, slots=True)
class Decider:
    """A running scheduler.

    * pids: of its processes, and of the stores that only it uses, by name.
    * accounts: how the names of its accounts in the cluster begin.
    * account: (server, username, password) of the server that takes its queues; None: the cluster does.
    """

    plane: AuditedServer
    pids: Mapping[str, int]
    accounts: tuple[str, ...]
    account: tuple[str, str, str] | None = None

    def processor_seconds(self) -> dict[str, float]:
        """Return the seconds that each process has taken so far, with its children."""
        return {name: seconds_taken(pid) for name, pid in self.pids.items()}

    def memory_mib(self) -> dict[str, int]:
        """Return the memory of each process, with its children: what several share is divided among them."""
        return {name: sum(map(_memory_kib, _family(pid))) // 1024 for name, pid in self.pids.items()}


@contextlib.contextmanager
def _kueue(context: DeciderContext, *, lifted: bool) -> Iterator[Decider]:
    configuration = default_configuration(context.source)
    configuration["integrations"] = {"frameworks": ["batch/job"]}
    if lifted:
        configuration["clientConnection"] = {"qps": 5_000, "burst": 10_000}
    kueue = RealKueue(context.plane, context.folder, binary=context.program, source=context.source)
    kueue.install()
    kueue.start(configuration)
    try:
        assert kueue.pid is not None
        yield Decider(context.plane, {"kueue": kueue.pid}, (_KUEUES_ACCOUNT,))
    finally:
        kueue.stop()


@contextlib.contextmanager
def _kueueweb(context: DeciderContext, *, serves: bool = False, together: bool = False) -> Iterator[Decider]:
    """Run all processes, each with its own account in the cluster; or, `together`, the web process and `manage.py run`,
    with one account that has every right."""
    plane, folder, password = context.plane, context.folder, secrets.token_urlsafe(24)
    folder.mkdir()
    if serves:
        kinds = ("Namespace", "CustomResourceDefinition")
        install(plane, (item for item in definitions_and_roles(context.source) if item["kind"] in kinds))
    files = (*_FILES, "served") if serves else _FILES
    install(
        plane,
        (item for name in files for item in documents(f"{name}.yaml") if item["kind"] not in _RUNS_BESIDE),
    )
    postgres = Postgres(folder / "postgres")
    postgres.start()
    try:
        with Processes(folder, database=postgres.url()) as processes:
            processes.settings |= {
                "SECRET_KEY": secrets.token_urlsafe(48), "ALLOWED_HOSTS": "127.0.0.1",
                "DJANGO_SUPERUSER_PASSWORD": password, "SERVE_UNCOLLECTED_STATIC": "true",
            }  # fmt: skip
            _manage(processes, "migrate", "--verbosity", "0", "--no-input")
            _manage(processes, "set_cluster", "--mode", "schedule", *(("--serve-kueue-objects",) if serves else ()))
            _manage(processes, "createsuperuser", "--noinput", "--username", "admin", "--email", "admin@localhost")
            port = free_port()
            (_start_together if together else _start)(plane, processes)
            processes.start("web", *_MANAGE, "serve", "--host", "127.0.0.1", "--port", str(port))
            server = f"http://127.0.0.1:{port}"
            wait_for("REST's answer", lambda: _answers(server), _START_SECONDS)
            assert postgres.pid is not None
            assert processes.valkey.pid is not None
            stores = {"PostgreSQL": postgres.pid, "Valkey": processes.valkey.pid}
            account = None if serves else (server, "admin", password)
            yield Decider(plane, {**processes.pids, **stores}, (_OUR_ACCOUNTS,), account)
    finally:
        postgres.stop()


DECIDERS: Final[Mapping[str, Callable[[DeciderContext], contextlib.AbstractContextManager[Decider]]]] = {
    "kueue": lambda context: _kueue(context, lifted=False),
    "kueue-lifted": lambda context: _kueue(context, lifted=True),
    "kueueweb": lambda context: _kueueweb(context),
    "kueueweb-together": lambda context: _kueueweb(context, together=True),
    "kueueweb-serving": lambda context: _kueueweb(context, serves=True),
}
"""By name: Kueue with its own limits of requests and without them; kueueweb with a process for each role, with one for
all but the web, and with Kueue's objects."""


def _start(plane: AuditedServer, processes: Processes) -> None:
    processes.start_scheduler()
    processes.start_beat()
    _act_as(plane, processes, "watcher")
    processes.start("watcher", *_MANAGE, "watch_cluster")
    _act_as(plane, processes, "push")
    processes.start_push()
    _act_as(plane, processes, "web")


def _start_together(plane: AuditedServer, processes: Processes) -> None:
    plane.admin.create(_ACCOUNTS, {"metadata": {"namespace": "kueueweb", "name": "kueueweb-all"}})
    plane.admin.create(
        _BINDINGS,
        {
            "metadata": {"name": "kueueweb-all"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "namespace": "kueueweb", "name": "kueueweb-all"}],
        },
    )
    _act_as(plane, processes, "all")
    processes.start("run", *_MANAGE, "run")


def _act_as(plane: AuditedServer, processes: Processes, account: str) -> None:
    """Give the processes that start from now on the account's rights in the cluster."""
    kubeconfig = processes.folder / f"{account}.kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(plane.kubeconfig(plane.token_of("kueueweb", f"kueueweb-{account}"))))
    processes.settings["KUBECONFIG"] = str(kubeconfig)


def _manage(processes: Processes, *arguments: str) -> None:
    done = subprocess.run(
        (sys.executable, *_MANAGE, *arguments),
        cwd=ROOT, env=processes.environment, text=True, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"


def _answers(server: str) -> bool:
    try:
        with urllib.request.urlopen(f"{server}/healthz", timeout=5):
            return True
    except OSError:
        return False


def _family(pid: int) -> Iterator[int]:
    yield pid
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in thread.read_text().split():
                yield from _family(int(child))


def _memory_kib(pid: int) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1])
    return 0
