"""The real Kueue beside kueueweb, where the caller brings it: KUEUE_BINARY is its program, KUEUE_SOURCE its checkout.

It needs root: Kueue reads the certificates of its metrics below /etc, and gets a mount namespace of its own for them.
"""

from __future__ import annotations

import base64
import os
import shutil
import ssl
import subprocess
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import yaml

from clusters.api_objects import JsonObject
from clusters.leases import KUEUES_NAMESPACE
from clusters.webhook.certificates import renewed
from kueueweb.embedded import children
from kueueweb.embedded.sockets import free_port
from tests.acceptance.processes import wait_for
from tests.kubernetes.control_plane import ADMIN_TOKEN, JobServer

BINARY: Final = Path(os.environ.get("KUEUE_BINARY", "/nonexistent"))
SOURCE: Final = Path(os.environ.get("KUEUE_SOURCE", "/nonexistent"))
_ACCOUNT: Final = "kueue-controller-manager"
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


def definitions_and_roles(source: Path) -> Iterator[JsonObject]:
    """What a release installs of a checkout, without the Deployment and all that leads to it."""
    components = source / "config" / "components"
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": KUEUES_NAMESPACE}}
    yield from _documents(components / "crd" / "bases")
    for document in _documents(components / "rbac"):
        metadata = document["metadata"]
        metadata |= {"name": f"kueue-{metadata['name']}", "labels": {**metadata.get("labels", {}), **_LABELS}}
        if document["kind"] in ("ServiceAccount", "Role", "RoleBinding"):
            metadata["namespace"] = KUEUES_NAMESPACE
        if "roleRef" in document:
            document["roleRef"]["name"] = f"kueue-{document['roleRef']['name']}"
        for subject in document.get("subjects", ()):
            subject |= {"name": f"kueue-{subject['name']}", "namespace": KUEUES_NAMESPACE}
        yield document


def default_configuration(source: Path) -> JsonObject:
    """How a release configures it."""
    file = source / "config" / "components" / "manager" / "controller_manager_config.yaml"
    found: JsonObject = yaml.safe_load(file.read_text())
    return found


def install(plane: JobServer, documents: Iterable[JsonObject]) -> None:
    """Apply them, the definitions before what is of their kinds."""
    found = list(documents)
    first = [each for each in found if each["kind"] in ("Namespace", "CustomResourceDefinition")]
    apply = ("apply", "--server-side", "--force-conflicts", "-f", "-")
    plane.kubectl(*apply, manifests=first)
    if any(each["kind"] == "CustomResourceDefinition" for each in first):
        plane.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=50s")
    if others := [each for each in found if each not in first]:
        plane.kubectl(*apply, manifests=others)


def _documents(folder: Path) -> Iterator[JsonObject]:
    """The objects of a folder's files; those of kustomize itself have no kind."""
    for path in sorted(folder.glob("*.yaml")):
        yield from (each for each in yaml.load_all(path.read_text(), Loader=yaml.CSafeLoader) if "kind" in (each or {}))


_VISIBILITY_FOLDER: Final = Path("/visibility")
"""Where Kueue's visibility server reads its certificate."""
_VISIBILITY_SERVER: Final = {"bindAddress": "127.0.0.1", "bindPort": 443}


class RealKueue:
    """Its definitions, roles and webhooks in the cluster; the program starts and stops.

    * serves_visibility: whether it serves its visibility API too, on the port of a Service without a kube-proxy, 443.
    """

    def __init__(
        self,
        plane: JobServer,
        folder: Path,
        *,
        binary: Path = BINARY,
        source: Path = SOURCE,
        serves_visibility: bool = False,
    ) -> None:
        self._plane = plane
        self._folder = folder
        self._binary = binary
        self._source = source
        self._serves_visibility = serves_visibility
        self._webhooks, self._health, self._metrics = free_port(), free_port(), free_port()
        self._child: subprocess.Popen[bytes] | None = None
        certificates = renewed(None, ["127.0.0.1"], datetime.now(UTC))
        self._authority = base64.b64encode(certificates.authorities).decode()
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "authorities.crt").write_bytes(certificates.authorities)
        for place in (folder, folder / "etc" / "kueue" / "metrics" / "certs"):
            place.mkdir(parents=True, exist_ok=True)
            (place / "tls.crt").write_bytes(certificates.certificate)
            (place / "tls.key").write_bytes(certificates.key)
        (folder / "work").mkdir()

    @property
    def pid(self) -> int | None:
        """The id of the program's process; None while it is stopped."""
        return None if self._child is None else self._child.pid

    def install(self) -> None:
        """All that its release has but the Deployment; its webhooks are found by address."""
        install(self._plane, self._released())

    def _released(self) -> Iterator[JsonObject]:
        components = self._source / "config" / "components"
        kustomization = yaml.safe_load((components / "crd" / "kustomization.yaml").read_text())
        converted = {Path(each["path"]).stem for each in kustomization["patches"]}
        webhook = {"conversionReviewVersions": ["v1"], "clientConfig": self._asked_at("/convert")}
        for document in definitions_and_roles(self._source):
            if f"webhook_in_{document.get('spec', {}).get('names', {}).get('plural')}" in converted:
                document["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
            yield document
        for document in _documents(components / "webhook"):
            if "webhooks" in document:
                document["metadata"]["name"] = f"kueue-{document['metadata']['name']}"
                for webhook in document["webhooks"]:
                    self._point(webhook)
                yield document

        if self._serves_visibility:
            yield from self._visibility()

    def _visibility(self) -> Iterator[JsonObject]:
        for document in _documents(self._source / "config" / "components" / "visibility"):
            if document["apiVersion"] == "builtin":  # a rule of kustomize
                continue
            if document["kind"] == "Service":
                document["spec"] = {"type": "ExternalName", "externalName": "localhost"}
            for subject in document.get("subjects", ()):
                subject |= {"name": f"kueue-{subject['name']}", "namespace": KUEUES_NAMESPACE}
            yield document

    def start(self, configuration: Mapping[str, Any] | None = None) -> None:
        """Returns when it is ready: as the leader, or as a standby. By default it is configured as its release is."""
        token = self._plane.token_of(KUEUES_NAMESPACE, _ACCOUNT)
        (self._folder / "kubeconfig").write_text(yaml.safe_dump(self._plane.kubeconfig(token)))
        (self._folder / "configuration.yaml").write_text(yaml.safe_dump(self._local(configuration or self._default())))
        overlay = f"lowerdir=/etc,upperdir={self._folder}/etc,workdir={self._folder}/work"
        mounts = [f"mount -t overlay overlay -o {overlay} /etc"]
        if self._serves_visibility:
            _VISIBILITY_FOLDER.mkdir(exist_ok=True)  # stays empty: only the program sees what is mounted there
            mounts.append(f"mount --bind {self._folder} {_VISIBILITY_FOLDER}")
        mounted = " && ".join([*mounts, 'exec "$@"'])
        with (self._folder / "kueue.log").open("ab") as output:
            command: list[str | Path] = [
                "unshare", "--mount", "sh", "-c", mounted, "kueue", self._binary, "--kubeconfig", "kubeconfig",
                "--config", "configuration.yaml",
            ]  # fmt: skip
            self._child = children.start(command, output=output, directory=self._folder)
        wait_for("Kueue", self._is_ready, 240)

    def stop(self) -> None:
        """As a Deployment without replicas does: it lets go of its lease."""
        if self._child is not None:
            children.stop(self._child)
            self._child = None
            if self._serves_visibility:
                _VISIBILITY_FOLDER.rmdir()

    def _is_ready(self) -> bool:
        assert self._child is not None
        assert self._child.poll() is None, (self._folder / "kueue.log").read_text()[-2000:]
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._health}/readyz", timeout=5):
                return True
        except OSError:
            return False

    def _default(self) -> JsonObject:
        return {**default_configuration(self._source), "integrations": {"frameworks": list(_FRAMEWORKS)}}

    def _local(self, configuration: Mapping[str, Any]) -> JsonObject:
        """The Configuration for a program that runs beside the cluster."""
        return {
            **configuration,
            "namespace": KUEUES_NAMESPACE,
            "leaderElection": {**configuration.get("leaderElection", {}), "resourceNamespace": KUEUES_NAMESPACE},
            "health": {"healthProbeBindAddress": f"127.0.0.1:{self._health}"},
            "metrics": {**configuration.get("metrics", {}), "bindAddress": f"127.0.0.1:{self._metrics}"},
            "webhook": {"port": self._webhooks, "host": "127.0.0.1", "certDir": str(self._folder)},
            "internalCertManagement": {"enable": False},
            "featureGates": {**configuration.get("featureGates", {}), "VisibilityOnDemand": self._serves_visibility},
            **({"visibilityServer": _VISIBILITY_SERVER} if self._serves_visibility else {}),
        }

    def metrics(self) -> bytes:
        """As Prometheus reads them."""
        request = urllib.request.Request(f"https://127.0.0.1:{self._metrics}/metrics")
        request.add_header("Authorization", f"Bearer {ADMIN_TOKEN}")
        trusted = ssl.create_default_context(cafile=self._folder / "authorities.crt")
        with urllib.request.urlopen(request, timeout=30, context=trusted) as answer:
            return bytes(answer.read())

    def _asked_at(self, path: str) -> JsonObject:
        return {"url": f"https://127.0.0.1:{self._webhooks}{path}", "caBundle": self._authority}

    def _point(self, webhook: dict[str, Any]) -> None:
        webhook["clientConfig"] = self._asked_at(webhook["clientConfig"]["service"]["path"])
        if webhook["rules"][0]["apiGroups"] != ["kueue.x-k8s.io"]:
            never = ["kube-system", KUEUES_NAMESPACE]
            outside = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": never}
            webhook["namespaceSelector"] = {"matchExpressions": [outside]}
