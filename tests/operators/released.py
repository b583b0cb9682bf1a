"""Operators of kinds of jobs as their releases have them: programs, definitions and webhooks beside a control plane."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import yaml

from clusters.api_objects import JsonObject, Kind
from clusters.webhook.certificates import renewed
from kueueweb.embedded import children
from kueueweb.embedded.sockets import free_port
from tests.acceptance.processes import wait_for
from tests.kubernetes.control_plane import ADMIN_TOKEN, PROGRAMS, JobServer
from tests.kubernetes.operators import CRDS

MANIFESTS: Final = PROGRAMS / "operators"
_HOST: Final = "127.0.0.1"
_NAMESPACE: Final = "operators"
_SECRETS: Final = Kind("v1", "Secret", "secrets")


class Release(NamedTuple):
    """A program, the kinds that it runs, and the group of its configuration file; "" where it takes arguments.

    `certificates_field`: the field of that file by which it takes the certificates of its webhooks from a folder.
    `names_folder`: that file names this folder; otherwise it is below the folder of temporary files.
    `webhooks_name`: the name that it looks for its webhooks by; "" where it does not look for them.
    `own_secret`: the Secret in which it stores certificates that it makes itself, and which a kubelet would mount.
    `is_alone`: no option changes a port or a folder of it, so that a machine runs one.
    `asking_kinds`: those for whose jobs it asks a program in a pod by HTTP; no pod runs a program here.
    """

    program: str
    kinds: tuple[str, ...]
    configured_by: str = ""
    arguments: tuple[str, ...] = ()
    certificates_field: str = "internalCertManagement"
    names_folder: bool = False
    webhooks_name: str = ""
    own_secret: str = ""
    healthy_at: str = "/readyz"
    is_alone: bool = False
    asking_kinds: tuple[str, ...] = ()


RELEASES: Final = (
    Release("jobset", ("JobSet",), "config.jobset.x-k8s.io/v1alpha1"),
    Release("lws", ("LeaderWorkerSet",), "config.lws.x-k8s.io/v1alpha1", names_folder=True),
    Release(
        "mpi-operator",
        ("MPIJob",),
        arguments=("--kubeConfig", "kubeconfig", "--lock-namespace", "kube-system"),
        healthy_at="",
        is_alone=True,
    ),
    Release(
        "ray-operator",
        ("RayCluster",),
        asking_kinds=("RayJob",),
        arguments=(
            "--kubeconfig", "kubeconfig", "--enable-leader-election=false", "--metrics-addr", f"{_HOST}:0",
            "--health-probe-bind-address", "{health}",
        ),
    ),
    Release(
        "trainer",
        ("TrainJob",),
        "config.trainer.kubeflow.org/v1alpha1",
        certificates_field="certManagement",
    ),
    Release(
        "training-operator",
        ("PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob"),
        arguments=(
            "--kubeconfig", "kubeconfig", "--metrics-bind-address", f"{_HOST}:0",
            "--health-probe-bind-address", "{health}", "--webhook-server-port", "{webhooks}",
            "--enable-scheme=pytorchjob", "--enable-scheme=tfjob", "--enable-scheme=xgboostjob",
            "--enable-scheme=paddlejob", "--enable-scheme=jaxjob",
        ),
        webhooks_name="validator.training-operator.kubeflow.org",
        own_secret="training-operator-webhook-cert",
        is_alone=True,
    ),
)  # fmt: skip
KINDS: Final = tuple(kind for release in RELEASES for kind in (*release.kinds, *release.asking_kinds))


class ReleasedOperator:
    """One of them, from the moment it is ready until the end of the block.

    `answers_for_pods`: the URL of an HTTP proxy by which it asks programs in pods.
    """

    def __init__(self, release: Release, plane: JobServer, folder: Path, answers_for_pods: str = "") -> None:
        self._release = release
        self._proxy = {"HTTP_PROXY": answers_for_pods} if answers_for_pods else {}
        self._plane = plane
        self._folder = folder / release.program
        self._folder.mkdir()
        self._webhooks, self._health = free_port(), free_port()
        # A program that makes its certificates itself has no option for the folder.
        self._temporary = Path("/tmp") if release.own_secret else self._folder
        self._serving = self._temporary / "k8s-webhook-server" / "serving-certs"
        self._serving.mkdir(parents=True, exist_ok=True)
        self._authority = "" if release.own_secret else self._write_certificates()
        (self._folder / "kubeconfig").write_text(yaml.safe_dump(plane.kubeconfig(ADMIN_TOKEN)))
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        installed = list(self._manifests())
        definitions = [each for each in installed if each["kind"] == "CustomResourceDefinition"]
        self._apply(definitions)
        wait_for("the definitions to be established", self._are_established, 120)
        self._apply([*self._surroundings(), *(each for each in installed if each not in definitions)])
        with self._log.open("ab") as output:
            command: list[str | Path] = [PROGRAMS / self._release.program, *self._arguments()]
            environment = {**os.environ, "TMPDIR": str(self._temporary), "MY_POD_NAMESPACE": _NAMESPACE, **self._proxy}
            self._child = children.start(command, output=output, directory=self._folder, environment=environment)
        if self._release.own_secret:
            wait_for(f"the certificates of {self._release.program}", self._mount_certificates, 120)
        wait_for(f"{self._release.program} to be ready", self._is_ready, 120)
        return self

    def __exit__(self, *_: object) -> None:
        if self._child is not None:
            children.stop(self._child)
        for item in self._manifests():
            if item["kind"] != "CustomResourceDefinition":
                self._plane.kubectl("delete", item["kind"], item["metadata"]["name"])
        if self._release.own_secret:
            shutil.rmtree(self._serving)

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

    def _apply(self, manifests: list[JsonObject]) -> None:
        if manifests:
            self._plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", manifests=manifests)

    def _are_established(self) -> bool:
        return all(
            any(each["type"] == "Established" and each["status"] == "True" for each in conditions)
            for item in self._plane.admin.list(CRDS).items
            for conditions in ((item.get("status") or {}).get("conditions") or (),)
        )

    def _surroundings(self) -> Iterator[JsonObject]:
        """The namespace, a Service that leads to this machine, and the Secret that the program fills."""
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE}}
        metadata = {"name": self._release.program, "namespace": _NAMESPACE}
        service = {"type": "ExternalName", "externalName": "localhost"}
        yield {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": service}
        if self._release.own_secret:
            metadata = {"name": self._release.own_secret, "namespace": _NAMESPACE}
            yield {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}

    def _write_certificates(self) -> str:
        """Write the program's certificate; return the authority that the API server is to trust."""
        certificates = renewed(None, [f"{self._release.program}.{_NAMESPACE}.svc"], datetime.now(UTC))
        (self._serving / "tls.crt").write_bytes(certificates.certificate)
        (self._serving / "tls.key").write_bytes(certificates.key)
        return base64.b64encode(certificates.authorities).decode()

    def _mount_certificates(self) -> bool:
        """Write the Secret of the program where a kubelet would mount it; return whether it is filled."""
        self.check()
        secret = self._plane.admin.get(_SECRETS, _NAMESPACE, self._release.own_secret)
        content = (secret or {}).get("data") or {}
        for name in ("tls.crt", "tls.key"):
            if name in content:
                (self._serving / name).write_bytes(base64.b64decode(content[name]))
        return "tls.crt" in content

    def _arguments(self) -> Iterator[str]:
        health = f"{_HOST}:{self._health}"
        if self._release.configured_by:
            webhook: JsonObject = {"host": _HOST, "port": self._webhooks}
            if self._release.names_folder:
                webhook["certDir"] = str(self._serving)
            configuration = {
                "apiVersion": self._release.configured_by,
                "kind": "Configuration",
                "leaderElection": {"leaderElect": False},
                self._release.certificates_field: {"enable": False},
                "health": {"healthProbeBindAddress": health},
                "metrics": {"bindAddress": f"{_HOST}:{free_port()}"},
                "webhook": webhook,
            }
            (self._folder / "configuration.yaml").write_text(yaml.safe_dump(configuration))
            yield from ("--config", "configuration.yaml", "--kubeconfig", "kubeconfig")
        yield from (argument.format(health=health, webhooks=self._webhooks) for argument in self._release.arguments)

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
                    named = self._release.webhooks_name or f"{self._release.program}-{item['metadata']['name']}"
                    item["metadata"]["name"] = named
                    for webhook in item["webhooks"]:
                        self._point(webhook)
                yield item

    def _point(self, webhook: dict[str, Any]) -> None:
        """Have the API server find a webhook by the program's Service, whose name is in the certificate."""
        service = {
            "namespace": _NAMESPACE,
            "name": self._release.program,
            "port": self._webhooks,
            "path": webhook["clientConfig"]["service"]["path"],
        }
        webhook["clientConfig"] = {"service": service}
        if self._authority:
            webhook["clientConfig"]["caBundle"] = self._authority
        outside = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system"]}
        webhook["namespaceSelector"] = {"matchExpressions": [outside]}
