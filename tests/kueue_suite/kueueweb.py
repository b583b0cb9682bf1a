"""kueueweb's processes, which decide while a suite runs."""

from __future__ import annotations

import contextlib
import secrets
import subprocess
import sys
import urllib.request
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import yaml

from clusters.api_objects import JsonObject, Kind
from kueueweb.embedded.postgres import Postgres
from kueueweb.embedded.sockets import free_port
from tests.acceptance.processes import ROOT, Processes, wait_for
from tests.kubernetes.real_kueue import install
from tests.kubernetes.system import documents
from tests.kueue_suite.plane import AggregatedPlane

_FILES: Final = (
    "namespace", "rbac", "observer", "served", "all-tenants", "switch", "webhook", "webhook-configurations",
)  # fmt: skip
_FILE_OF_VISIBILITY: Final = "visibility"
_FILE_OF_SEVERAL: Final = "multikueue"
_RUNS_BESIDE: Final = ("Deployment", "PodDisruptionBudget", "NetworkPolicy", "Ingress")
_MANAGE: Final = ("-m", "kueueweb")
_HERE: Final = ("--host", "127.0.0.1", "--port")
_VISIBILITY_PORT: Final = 443
_MAKE_TOKEN: Final = """
from django.contrib.auth.models import User
from accounts.services.tokens import create_token
print(create_token(User.objects.create_superuser("suite"), "suite")[0])
"""
_START_SECONDS: Final = 900.0
_WEBHOOKS: Final = Kind(
    "admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", namespaced=False
)


@contextlib.contextmanager
def kueueweb(plane: AggregatedPlane, folder: Path, *, is_alone: bool = True) -> Iterator[Kueueweb]:
    """All processes of kueueweb, with the rights of deploy/kubernetes.

    `is_alone`: whether it serves the visibility API, for which a machine has one port, rather than MultiKueue.
    """
    install(plane, _deployed((*_FILES, _FILE_OF_VISIBILITY if is_alone else _FILE_OF_SEVERAL)))
    postgres = Postgres(folder / "postgres")
    postgres.start()
    try:
        with Processes(folder, database=postgres.url()) as processes:
            decider = Kueueweb(plane, processes)
            decider.start()
            if is_alone:
                decider.serve_visibility()
            yield decider
    finally:
        postgres.stop()


def _deployed(files: Iterable[str]) -> Iterator[JsonObject]:
    """deploy/kubernetes without what runs in pods: the processes run beside the cluster."""
    for item in (item for name in files for item in documents(f"{name}.yaml")):
        if item["kind"] == "Service" and item["metadata"]["name"] == "visibility":
            item["spec"] = {"type": "ExternalName", "externalName": "localhost"}  # no kube-proxy leads to a Service
        if item["kind"] not in _RUNS_BESIDE:
            yield item


class Kueueweb:
    """kueueweb on a database of its own; each process that writes to the cluster has its own account there."""

    def __init__(self, plane: AggregatedPlane, processes: Processes) -> None:
        self._plane = plane
        self._processes = processes
        self._web = free_port()
        self._token = ""

    def start(self) -> None:
        """As docs/switching.md says for an empty cluster; returns when the API server asks the webhook."""
        self._processes.settings |= {
            "SECRET_KEY": secrets.token_urlsafe(48), "ADMISSION_CHECK_SIGNING_KEY": secrets.token_urlsafe(48),
            "ALLOWED_HOSTS": "127.0.0.1", "SERVE_UNCOLLECTED_STATIC": "true",
        }  # fmt: skip
        self._manage("migrate", "--verbosity", "0", "--no-input")
        self._manage("set_cluster", "--mode", "schedule", "--serve-kueue-objects")
        self.configure()
        self._token = self._manage("shell", "--verbosity", "0", "--command", _MAKE_TOKEN).strip()
        hook = free_port()
        self._processes.start_scheduler()
        self._processes.start_beat()
        self._act_as("webhook")
        self._processes.start("webhook", *_MANAGE, "webhook", *_HERE, str(hook), "--url", f"https://127.0.0.1:{hook}")
        self._act_as("watcher")
        self._processes.start("watcher", *_MANAGE, "watch_cluster")
        self._act_as("push")
        self._processes.start_push()
        self._act_as("web")
        self._processes.start("web", *_MANAGE, "serve", *_HERE, str(self._web))
        wait_for("the webhook's registration", self._is_registered, _START_SECONDS)

    def serve_visibility(self) -> None:
        """Its port is the one at which the API server asks an ExternalName."""
        self._act_as("visibility")
        self._processes.start("visibility", *_MANAGE, "visibility", *_HERE, str(_VISIBILITY_PORT))

    def configure(self) -> None:
        self._manage("apply", "-f", "-", text=yaml.safe_dump(self._plane.stored_configuration()))

    def metrics(self) -> bytes:
        address = f"http://127.0.0.1:{self._web}/metrics"
        request = urllib.request.Request(address, headers={"Authorization": f"Token {self._token}"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return bytes(answer.read())

    def _act_as(self, account: str) -> None:
        """The processes that start from now on have the account's rights in the cluster."""
        kubeconfig = self._processes.folder / f"{account}.kubeconfig"
        token = self._plane.token_of("kueueweb", f"kueueweb-{account}")
        kubeconfig.write_text(yaml.safe_dump(self._plane.kubeconfig(token)))
        self._processes.settings["KUBECONFIG"] = str(kubeconfig)

    def _manage(self, *arguments: str, text: str = "") -> str:
        done = subprocess.run(
            (sys.executable, *_MANAGE, *arguments),
            cwd=ROOT, env=self._processes.environment, input=text, text=True, capture_output=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
        return done.stdout

    def _is_registered(self) -> bool:
        found = self._plane.admin.get(_WEBHOOKS, "", "admission.kueueweb.io")
        return found is not None and all("url" in hook["clientConfig"] for hook in found["webhooks"])
