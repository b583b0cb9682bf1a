"""A real Kubernetes control plane on this machine's loopback, with kwok in the place of kubelets.

`scripts/kubernetes.py` has built the programs. Everything lies in one temporary folder and ends with the test process.
"""

from __future__ import annotations

import base64
import contextlib
import signal
import ssl
import subprocess
import urllib.request
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Self

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from kubernetes import client as kubernetes_client

from clusters.api_errors import ClusterError
from clusters.api_objects import Kind
from clusters.client import ClusterClient, TokenBucket
from kueueweb.embedded import children
from kueueweb.embedded.sockets import free_port
from tests.acceptance.processes import wait_for

PROGRAMS: Final = Path(__file__).resolve().parents[2] / ".run" / "kubernetes"
STAGES: Final = Path(__file__).with_name("stages.yaml")
ADMIN_TOKEN: Final = "the-admin-of-a-test"
_TOKEN_SECONDS: Final = 86_400
_SYSTEM: Final = Kind("v1", "Namespace", "namespaces", namespaced=False)


class JobServer:
    """etcd, the API server with RBAC, and the controllers that make the pods of jobs and delete what belongs to what
    is gone. Nobody places or runs pods."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._etcd = f"http://127.0.0.1:{free_port()}"
        self.url = f"https://127.0.0.1:{free_port()}"
        self.admin = self.client(ADMIN_TOKEN)

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as undo:
            undo.push(self.__exit__)
            self._start_etcd()
            self._write_keys()
            self._write_kubeconfig()
            self.start_api_server()
            self._start_controllers()
            undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        for child in reversed(self._children.values()):
            children.stop(child)

    def _start_controllers(self) -> None:
        self._start_controller_manager("--controllers", "job-controller,garbage-collector-controller")

    def _start_controller_manager(self, *arguments: str) -> None:
        """Each controller has its own account, as in a cluster: webhooks are told which one."""
        keys = ("--service-account-private-key-file", "service-account.key")
        self._start(
            "kube-controller-manager", "--kubeconfig", "kubeconfig", "--leader-elect=false",
            "--secure-port", str(free_port()), "--use-service-account-credentials", *keys, *arguments,
        )  # fmt: skip

    def kill_api_server(self) -> None:
        """Nobody answers any more; what it has stored stays."""
        children.stop(self._children["kube-apiserver"], wish=signal.SIGKILL)

    def client(self, token: str) -> ClusterClient:
        """A client with whoever's rights the token gives."""
        configuration = kubernetes_client.Configuration(host=self.url)
        configuration.api_key = {"authorization": f"Bearer {token}"}
        configuration.ssl_ca_cert = str(self._folder / "certificates" / "apiserver.crt")
        return ClusterClient(configuration, TokenBucket(1_000, 1_000))

    def token_of(self, namespace: str, service_account: str) -> str:
        """A token with the rights of a service account."""
        accounts = Kind("v1", "TokenRequest", f"serviceaccounts/{service_account}/token")
        answer = self.admin.create(
            accounts, {"metadata": {"namespace": namespace, "name": ""}, "spec": {"expirationSeconds": _TOKEN_SECONDS}}
        )
        return str(answer["status"]["token"])

    def kubectl(self, *arguments: str, manifests: Iterable[Mapping[str, Any]] = ()) -> str:
        """What kubectl prints, which gets these manifests by its standard input; fails where it fails."""
        command = [str(PROGRAMS / "kubectl"), "--kubeconfig", "kubeconfig", "--cache-dir", "kubectl", *arguments]
        text = yaml.safe_dump_all([*manifests])
        done = subprocess.run(
            command, cwd=self._folder, input=text, text=True, capture_output=True, check=False, timeout=60
        )
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    def said(self, program: str) -> str:
        """What a program said so far."""
        return (self._folder / f"{program}.log").read_text(errors="replace")

    def _start_etcd(self) -> None:
        peers = f"http://127.0.0.1:{free_port()}"
        self._start(
            "etcd", "--data-dir", "etcd", "--unsafe-no-fsync",
            "--listen-client-urls", self._etcd, "--advertise-client-urls", self._etcd,
            "--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers,
            "--initial-cluster", f"default={peers}",
        )  # fmt: skip

    def _further_arguments(self) -> tuple[str, ...]:
        """Return arguments of the API server that only some planes have."""
        return ()

    def start_api_server(self) -> None:
        """It answers, and has what it had stored if it ran before."""
        self._start(
            "kube-apiserver", "--etcd-servers", self._etcd, "--bind-address", "127.0.0.1",
            "--secure-port", self.url.split(":")[-1], "--cert-dir", "certificates",
            "--service-cluster-ip-range", "10.0.0.0/24", "--authorization-mode", "RBAC",
            "--token-auth-file", "tokens.csv", "--service-account-issuer", "https://kubernetes.default.svc",
            "--service-account-key-file", "service-account.pub",
            "--service-account-signing-key-file", "service-account.key",
            "--disable-admission-plugins", "ServiceAccount", *self._further_arguments(),
        )  # fmt: skip
        wait_for("the API server's answer", self._answers, 240)

    def _start(self, program: str, *arguments: str) -> None:
        with (self._folder / f"{program}.log").open("ab") as output:
            command: list[str | Path] = [PROGRAMS / program, *arguments]
            self._children[program] = children.start(command, output=output, directory=self._folder)

    def _answers(self) -> bool:
        assert self._children["kube-apiserver"].poll() is None, self.said("kube-apiserver")[-2000:]
        try:
            trusted = ssl.create_default_context(cafile=self._folder / "certificates" / "apiserver.crt")
            with urllib.request.urlopen(f"{self.url}/readyz", context=trusted, timeout=5):
                return self.admin.get(_SYSTEM, "", "kube-system") is not None
        except (ClusterError, OSError):
            return False

    def _write_keys(self) -> None:
        (self._folder / "tokens.csv").write_text(f"{ADMIN_TOKEN},admin,1,system:masters\n")
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        pem = serialization.Encoding.PEM
        private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        public = key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
        (self._folder / "service-account.key").write_bytes(private)
        (self._folder / "service-account.pub").write_bytes(public)

    def kubeconfig(self, token: str) -> dict[str, Any]:
        """How somebody with that token reaches it, in one document."""
        authority = base64.b64encode((self._folder / "certificates" / "apiserver.crt").read_bytes()).decode()
        return _kubeconfig({"server": self.url, "certificate-authority-data": authority}, token)

    def _write_kubeconfig(self) -> None:
        """For the controllers, which start when the API server has written its certificate."""
        authority = str(self._folder / "certificates" / "apiserver.crt")
        content = _kubeconfig({"server": self.url, "certificate-authority": authority}, ADMIN_TOKEN)
        (self._folder / "kubeconfig").write_text(yaml.safe_dump(content))


class ControlPlane(JobServer):
    """The same with all controllers, the default scheduler and kwok."""

    stages = STAGES
    """What kwok does in the place of kubelets."""
    managed_nodes: tuple[str, ...] = ("--manage-all-nodes",)
    """The nodes for which it does."""

    def _start_controllers(self) -> None:
        self._start_controller_manager()
        # A port of its own: two planes on one machine would both take the default one, and the second scheduler end.
        self._start(
            "kube-scheduler", "--kubeconfig", "kubeconfig", "--leader-elect=false", "--secure-port", str(free_port())
        )
        # Leases, or nodes of which nobody hears anything become unready after a minute.
        self._start(
            "kwok", "--kubeconfig", "kubeconfig", *self.managed_nodes, "--config", str(self.stages),
            "--node-lease-duration-seconds", "40",
        )  # fmt: skip


def _kubeconfig(cluster: dict[str, str], token: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": cluster}],
        "users": [{"name": "user", "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "user"}}],
        "current-context": "test",
    }
