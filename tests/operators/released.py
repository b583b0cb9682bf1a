"""Operators of kinds of jobs as their releases have them: programs, definitions and webhooks beside a control plane."""

from __future__ import annotations

import base64
import subprocess
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import yaml

from clusters.client import JsonObject
from clusters.webhook.certificates import renewed
from kueueweb.embedded import children
from kueueweb.embedded.sockets import free_port
from tests.acceptance.processes import wait_for
from tests.kubernetes.control_plane import ADMIN_TOKEN, PROGRAMS, ControlPlane

MANIFESTS: Final = PROGRAMS / "operators"
_HOST: Final = "127.0.0.1"


class Release(NamedTuple):
    """A program, the kinds that it runs, and the group of its configuration file; "" where it takes arguments.

    `has_own_port`: no option changes a port that it listens on, so that a machine runs one.
    """

    program: str
    kinds: tuple[str, ...]
    configured_by: str = ""
    arguments: tuple[str, ...] = ()
    healthy_at: str = "/readyz"
    has_own_port: bool = False


RELEASES: Final = (
    Release("jobset", ("JobSet",), "config.jobset.x-k8s.io/v1alpha1"),
    Release("lws", ("LeaderWorkerSet",), "config.lws.x-k8s.io/v1alpha1"),
    Release(
        "mpi-operator",
        ("MPIJob",),
        arguments=("--kubeConfig", "kubeconfig", "--lock-namespace", "kube-system"),
        healthy_at="",
        has_own_port=True,
    ),
    Release(
        "ray-operator",
        ("RayCluster",),  # the other kinds ask a program in the head's pod, which no pod runs here
        arguments=(
            "--kubeconfig", "kubeconfig", "--enable-leader-election=false", "--metrics-addr", f"{_HOST}:0",
            "--health-probe-bind-address", "{health}",
        ),
    ),
)  # fmt: skip
KINDS: Final = tuple(kind for release in RELEASES for kind in release.kinds)


class ReleasedOperator:
    """One of them, from the moment it is ready until the end of the block."""

    def __init__(self, release: Release, plane: ControlPlane, folder: Path) -> None:
        self._release = release
        self._plane = plane
        self._folder = folder / release.program
        self._folder.mkdir()
        self._webhooks, self._health = free_port(), free_port()
        certificates = renewed(None, [_HOST], datetime.now(UTC))
        self._authority = base64.b64encode(certificates.authorities).decode()
        (self._folder / "tls.crt").write_bytes(certificates.certificate)
        (self._folder / "tls.key").write_bytes(certificates.key)
        (self._folder / "kubeconfig").write_text(yaml.safe_dump(plane.kubeconfig(ADMIN_TOKEN)))
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        installed = list(self._manifests())
        definitions = [each for each in installed if each["kind"] == "CustomResourceDefinition"]
        webhooks = [each for each in installed if each not in definitions]
        apply = ("apply", "--server-side", "--force-conflicts", "-f", "-")
        self._plane.kubectl(*apply, manifests=definitions)
        self._plane.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=50s")
        with self._log.open("ab") as output:
            command: list[str | Path] = [PROGRAMS / self._release.program, *self._arguments()]
            self._child = children.start(command, output=output, directory=self._folder)
        wait_for(f"{self._release.program} to be ready", self._is_ready, 120)
        if webhooks:
            self._plane.kubectl(*apply, manifests=webhooks)
        return self

    def __exit__(self, *_: object) -> None:
        if self._child is not None:
            children.stop(self._child)
        for item in self._manifests():
            if item["kind"] != "CustomResourceDefinition":
                self._plane.kubectl("delete", item["kind"], item["metadata"]["name"])

    def check(self) -> None:
        """Fails if the program has ended."""
        assert self._child is not None
        assert self._child.poll() is None, self.said()

    def said(self) -> str:
        """The last lines of its log."""
        return self._log.read_text(errors="replace")[-3000:]

    @property
    def _log(self) -> Path:
        return self._folder / "operator.log"

    def _arguments(self) -> Iterator[str]:
        health = f"{_HOST}:{self._health}"
        if self._release.configured_by:
            configuration = {
                "apiVersion": self._release.configured_by,
                "kind": "Configuration",
                "leaderElection": {"leaderElect": False},
                "internalCertManagement": {"enable": False},
                "health": {"healthProbeBindAddress": health},
                "metrics": {"bindAddress": f"{_HOST}:{free_port()}"},
                "webhook": {"host": _HOST, "port": self._webhooks, "certDir": str(self._folder)},
            }
            (self._folder / "configuration.yaml").write_text(yaml.safe_dump(configuration))
            yield from ("--config", "configuration.yaml", "--kubeconfig", "kubeconfig")
        yield from (argument.format(health=health) for argument in self._release.arguments)

    def _is_ready(self) -> bool:
        self.check()
        if not self._release.healthy_at:
            return True
        try:
            with urllib.request.urlopen(f"http://{_HOST}:{self._health}{self._release.healthy_at}", timeout=5):
                return True
        except OSError:
            return False

    def _manifests(self) -> Iterator[JsonObject]:
        for path in sorted((MANIFESTS / self._release.program).glob("*.yaml")):
            for item in yaml.load_all(path.read_text(), Loader=yaml.CSafeLoader):
                if item["kind"] != "CustomResourceDefinition":
                    item["metadata"]["name"] = f"{self._release.program}-{item['metadata']['name']}"
                    for webhook in item["webhooks"]:
                        self._point(webhook)
                yield item

    def _point(self, webhook: dict[str, Any]) -> None:
        """Have the API server find a webhook by its address: no Service leads to a program beside it."""
        path = webhook["clientConfig"]["service"]["path"]
        webhook["clientConfig"] = {"url": f"https://{_HOST}:{self._webhooks}{path}", "caBundle": self._authority}
        outside = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system"]}
        webhook["namespaceSelector"] = {"matchExpressions": [outside]}
