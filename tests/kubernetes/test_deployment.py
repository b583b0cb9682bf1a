"""deploy/kubernetes, built as an operator builds it, is what a real API server takes, to the last field."""

from __future__ import annotations

from typing import Any, Final

import pytest
import yaml

from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.system import DEPLOY

OPTIONAL: Final = ("served.yaml", "visibility.yaml", "all-tenants.yaml")
"""Beside the kustomization: what serving Kueue's objects needs, its visibility API, and rights in all namespaces."""
Built = list[dict[str, Any]]
_DRY: Final = ("apply", "--server-side", "--dry-run=server", "--validate=strict", "--force-conflicts", "-f", "-")


@pytest.fixture(scope="module")
def built(plane: ControlPlane) -> Built:
    """What `kubectl apply -k` would send, where its namespace is: without it nothing in it can be tried."""
    plane.kubectl("apply", "-f", str(DEPLOY / "namespace.yaml"))
    return [item for item in yaml.safe_load_all(plane.kubectl("kustomize", str(DEPLOY))) if item]


def applied(output: str) -> list[str]:
    lines = output.splitlines()
    assert all(line.endswith("serverside-applied (server dry run)") for line in lines), output
    return [line.split()[0] for line in lines]


def test_the_whole_kustomization_is_accepted(plane: ControlPlane, built: Built) -> None:
    done = applied(plane.kubectl(*_DRY, manifests=built))
    assert len(done) == len(built) >= 30
    kinds = {each["kind"] for each in built}
    assert {"Deployment", "NetworkPolicy", "PodDisruptionBudget", "ServiceAccount", "Secret"} <= kinds


def test_an_unknown_field_is_not_accepted(plane: ControlPlane, built: Built) -> None:
    """The check above sees a word that nobody reads."""
    deployment = next(each for each in built if each["kind"] == "Deployment")
    deployment["spec"]["template"]["spec"]["containers"][0]["livenessprobe"] = {}
    with pytest.raises(AssertionError, match="livenessprobe"):
        plane.kubectl(*_DRY, manifests=[deployment])


@pytest.mark.parametrize("file", OPTIONAL)
def test_what_is_applied_beside_it_is_accepted(plane: ControlPlane, built: Built, file: str) -> None:
    manifests = [item for item in yaml.safe_load_all((DEPLOY / file).read_text()) if item]
    assert len(applied(plane.kubectl(*_DRY, manifests=manifests))) == len(manifests)


def test_a_tenant_s_namespace_takes_its_bindings(plane: ControlPlane) -> None:
    manifests = [item for item in yaml.safe_load_all((DEPLOY / "tenant.yaml").read_text()) if item]
    done = applied(plane.kubectl(*_DRY, "--namespace", "default", manifests=manifests))
    assert len(done) == len(manifests)


def test_every_pod_of_ours_has_probes_limits_and_a_read_only_root(built: Built) -> None:
    """As built: what a patch of the kustomization would take away is seen too."""
    pods = {
        each["metadata"]["name"]: each["spec"]["template"]["spec"] for each in built if each["kind"] == "Deployment"
    }
    assert set(pods) == {"web", "scheduler", "push", "beat", "studio", "watcher", "webhook"}
    for name, pod in pods.items():
        for container in pod["containers"]:
            assert {"livenessProbe", "resources", "securityContext"} <= set(container), name
            assert "memory" in container["resources"]["limits"], name
            assert container["securityContext"]["readOnlyRootFilesystem"], name
            assert container["image"].startswith("registry.example.org/kueueweb@sha256:"), name
    assert pods["watcher"]["serviceAccountName"] != pods["push"]["serviceAccountName"]
