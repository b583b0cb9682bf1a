"""The real Kueue beside kueueweb, where the caller brings it: KUEUE_BINARY is its program, KUEUE_SOURCE its checkout.

It needs root: Kueue reads the certificates of its metrics below /etc, and gets a mount namespace of its own for them.
"""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import yaml

from clusters.client import JsonObject
from clusters.leases import KUEUES_NAMESPACE
from clusters.webhook.certificates import renewed
from kueueweb.embedded import children
from kueueweb.embedded.sockets import free_port
from tests.acceptance.processes import wait_for
from tests.kubernetes.control_plane import ControlPlane

BINARY: Final = Path(os.environ.get("KUEUE_BINARY", "/nonexistent"))
SOURCE: Final = Path(os.environ.get("KUEUE_SOURCE", "/nonexistent"))
_ACCOUNT: Final = "kueue-controller-manager"
_RBAC: Final = (
    "service_account", "role", "role_binding", "leader_election_role", "leader_election_role_binding",
    "manager_secrets_role", "manager_secrets_role_binding",
)  # fmt: skip
_FRAMEWORKS: Final = (
    "batch/job", "pod", "deployment", "jobset.x-k8s.io/jobset", "kubeflow.org/pytorchjob", "ray.io/raycluster",
)  # fmt: skip
_LABELS: Final = {"app.kubernetes.io/name": "kueue", "control-plane": "controller-manager"}


def missing() -> str:
    """Why the real Kueue cannot run here; empty if it can."""
    if not BINARY.exists() or not SOURCE.exists():
        return "needs a built Kueue in KUEUE_BINARY and its checkout in KUEUE_SOURCE"
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return "the real Kueue needs root and unshare for its certificates"
    return ""


class RealKueue:
    """Its definitions, roles and webhooks in the cluster; the program starts and stops."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self._plane = plane
        self._folder = folder
        self._webhooks, self._health = free_port(), free_port()
        self._child: subprocess.Popen[bytes] | None = None
        certificates = renewed(None, ["127.0.0.1"], datetime.now(UTC))
        self._authority = base64.b64encode(certificates.authorities).decode()
        for place in (folder, folder / "etc" / "kueue" / "metrics" / "certs"):
            place.mkdir(parents=True, exist_ok=True)
            (place / "tls.crt").write_bytes(certificates.certificate)
            (place / "tls.key").write_bytes(certificates.key)
        (folder / "work").mkdir()

    def install(self) -> None:
        """All that its release has but the Deployment; its webhooks are found by address."""
        documents = list(self._documents())
        definitions = [each for each in documents if each["kind"] in ("Namespace", "CustomResourceDefinition")]
        self._plane.kubectl("apply", "--server-side", "-f", "-", manifests=definitions)
        self._plane.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=50s")
        rest = [each for each in documents if each not in definitions]
        self._plane.kubectl("apply", "--server-side", "-f", "-", manifests=rest)

    def start(self) -> None:
        """Returns when it is ready: as the leader, or as a standby."""
        token = self._plane.token_of(KUEUES_NAMESPACE, _ACCOUNT)
        (self._folder / "kubeconfig").write_text(yaml.safe_dump(self._plane.kubeconfig(token)))
        (self._folder / "configuration.yaml").write_text(yaml.safe_dump(self._configuration()))
        overlay = f"lowerdir=/etc,upperdir={self._folder}/etc,workdir={self._folder}/work"
        mounted = f'mount -t overlay overlay -o {overlay} /etc && exec "$@"'
        with (self._folder / "kueue.log").open("ab") as output:
            command: list[str | Path] = [
                "unshare", "--mount", "sh", "-c", mounted, "kueue", BINARY, "--kubeconfig", "kubeconfig",
                "--config", "configuration.yaml", "--feature-gates", "VisibilityOnDemand=false",
            ]  # fmt: skip
            self._child = children.start(command, output=output, directory=self._folder)
        wait_for("Kueue", self._is_ready, 240)

    def stop(self) -> None:
        """As a Deployment without replicas does: it lets go of its lease."""
        if self._child is not None:
            children.stop(self._child)
            self._child = None

    def _is_ready(self) -> bool:
        assert self._child is not None
        assert self._child.poll() is None, (self._folder / "kueue.log").read_text()[-2000:]
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._health}/readyz", timeout=5):
                return True
        except OSError:
            return False

    def _configuration(self) -> JsonObject:
        components = SOURCE / "config" / "components"
        found: JsonObject = yaml.safe_load((components / "manager" / "controller_manager_config.yaml").read_text())
        found["leaderElection"]["resourceNamespace"] = KUEUES_NAMESPACE
        return {
            **found,
            "namespace": KUEUES_NAMESPACE,
            "health": {"healthProbeBindAddress": f"127.0.0.1:{self._health}"},
            "metrics": {"bindAddress": "0"},
            "webhook": {"port": self._webhooks, "host": "127.0.0.1", "certDir": str(self._folder)},
            "internalCertManagement": {"enable": False},
            "integrations": {"frameworks": list(_FRAMEWORKS)},
        }

    def _documents(self) -> Iterator[JsonObject]:
        components = SOURCE / "config" / "components"
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": KUEUES_NAMESPACE}}
        for path in sorted((components / "crd" / "bases").glob("*.yaml")):
            yield yaml.safe_load(path.read_text())
        paths = [*(components / "rbac" / f"{name}.yaml" for name in _RBAC), components / "webhook" / "manifests.yaml"]
        for document in (each for path in paths for each in yaml.safe_load_all(path.read_text()) if each):
            metadata = document["metadata"]
            metadata |= {"name": f"kueue-{metadata['name']}", "labels": {**metadata.get("labels", {}), **_LABELS}}
            if document["kind"] in ("ServiceAccount", "Role", "RoleBinding"):
                metadata["namespace"] = KUEUES_NAMESPACE
            if "roleRef" in document:
                document["roleRef"]["name"] = f"kueue-{document['roleRef']['name']}"
            for subject in document.get("subjects", ()):
                subject |= {"name": f"kueue-{subject['name']}", "namespace": KUEUES_NAMESPACE}
            for webhook in document.get("webhooks", ()):
                self._point(webhook)
            yield document

    def _point(self, webhook: dict[str, Any]) -> None:
        path = webhook["clientConfig"].pop("service")["path"]
        webhook["clientConfig"] |= {"url": f"https://127.0.0.1:{self._webhooks}{path}", "caBundle": self._authority}
        if webhook["rules"][0]["apiGroups"] != ["kueue.x-k8s.io"]:
            never = ["kube-system", KUEUES_NAMESPACE]
            outside = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": never}
            webhook["namespaceSelector"] = {"matchExpressions": [outside]}
