"""The chart on a real control plane: installed, upgraded, rolled back and taken away, beside what we write there."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from clusters.api_objects import SECRETS
from clusters.webhook.configurations import Target, webhook_configurations
from tests.helm.chart import CHART, ROOT, Object, helm, rendered, sets
from tests.helm.test_chart import EVERYTHING
from tests.kubernetes.control_plane import ADMIN_TOKEN, ControlPlane

CRDS: Final = Path(__file__).with_name("crds")
PLAIN: Final = ROOT / "deploy" / "kubernetes"
DRY: Final = ("apply", "--server-side", "--dry-run=server", "--validate=strict", "--force-conflicts", "-f", "-")
IMAGE: Final = f"--set=image.digest=sha256:{'0123456789abcdef' * 4}"


@pytest.fixture(scope="module")
def kubeconfig(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The administrator's, of a cluster that has the Prometheus operator's definitions and a Kueue's namespace."""
    path = tmp_path_factory.mktemp("helm") / "kubeconfig"
    path.write_text(yaml.safe_dump(plane.kubeconfig(ADMIN_TOKEN)))
    definitions = [yaml.safe_load(gzip.decompress(file.read_bytes())) for file in CRDS.glob("*.yaml.gz")]
    namespaces = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        for name in ("kueueweb", "gpu", "kueue-system", "research")
    ]
    plane.kubectl("apply", "--server-side", "-f", "-", manifests=[*definitions, *namespaces])
    plane.kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
    return path


@pytest.fixture
def release(kubeconfig: Path, plane: ControlPlane) -> Iterator[Path]:
    """The kubeconfig; the release is taken away at the end."""
    yield kubeconfig
    helm("uninstall", "kueueweb", "--namespace", "kueueweb", "--ignore-not-found", kubeconfig=kubeconfig)
    plane.kubectl("delete", "secret,pvc", "--all", "--namespace", "kueueweb")


def done(kubeconfig: Path, *arguments: str) -> str:
    found = helm(*arguments, "--namespace", "kueueweb", kubeconfig=kubeconfig)
    assert found.returncode == 0, found.stderr
    return found.stdout


def stored(plane: ControlPlane, kind: str, name: str = "") -> Any:
    return yaml.safe_load(plane.kubectl("get", kind, *filter(None, [name]), "--namespace", "kueueweb", "-o", "yaml"))


def text_of(secret: Object, key: str) -> str:
    return base64.b64decode(secret["data"][key]).decode()


@pytest.mark.usefixtures("kubeconfig")
@pytest.mark.parametrize("namespace", ["kueueweb", "gpu"])
@pytest.mark.parametrize("arguments", [[], EVERYTHING], ids=["defaults", "everything"])
def test_the_api_server_takes_what_is_rendered_to_the_last_field(
    plane: ControlPlane, arguments: list[str], namespace: str
) -> None:
    objects = rendered(*arguments, namespace=namespace, with_tests=True)
    lines = plane.kubectl(*DRY, manifests=objects).splitlines()
    assert len(lines) == len(objects)
    assert all(line.endswith("serverside-applied (server dry run)") for line in lines)


def test_an_upgrade_changes_any_value_and_no_immutable_field(plane: ControlPlane, release: Path) -> None:
    trial = sets(postgresql__enabled="true", valkey__enabled="true")
    done(release, "install", "kueueweb", str(CHART), IMAGE, *trial)
    before = {each["metadata"]["name"]: each["spec"]["selector"] for each in stored(plane, "deployments")["items"]}
    assert set(before) == {"web", "scheduler", "push", "beat", "studio", "watcher", "webhook", "postgresql", "valkey"}

    done(
        release, "upgrade", "kueueweb", str(CHART), *EVERYTHING, "--set=image.tag=2.0", "--set=host=other.example.org",
        "--set=service.port=8080", "--set=service.type=NodePort", "--set=push.replicas=5",
        "--set=nodeSelector.pool=infra", "--set=podAnnotations.team=platform", "--set=postgresql.persistence.size=8Gi",
    )  # fmt: skip
    after = {each["metadata"]["name"]: each for each in stored(plane, "deployments")["items"]}
    assert {name: after[name]["spec"]["selector"] for name in before} == before
    assert after["push"]["spec"]["replicas"] == 5
    assert after["web"]["spec"]["template"]["spec"]["containers"][0]["image"] == "registry.example.org/kueueweb:2.0"

    done(release, "rollback", "kueueweb", "1")
    assert stored(plane, "deployment", "push")["spec"]["replicas"] == 2


def test_an_upgrade_keeps_the_secrets_that_were_made_at_the_install(plane: ControlPlane, release: Path) -> None:
    trial = sets(postgresql__enabled="true", valkey__enabled="true")
    done(release, "install", "kueueweb", str(CHART), *trial)
    names = ("kueueweb", "postgresql", "valkey")
    before = {name: stored(plane, "secret", name)["data"] for name in names}
    assert len(text_of(stored(plane, "secret", "kueueweb"), "SECRET_KEY")) == 48
    pods = [each["spec"]["template"] for each in stored(plane, "deployments")["items"]]

    done(release, "upgrade", "kueueweb", str(CHART), *trial)
    assert {name: stored(plane, "secret", name)["data"] for name in names} == before
    assert [each["spec"]["template"] for each in stored(plane, "deployments")["items"]] == pods, "no pod starts again"

    done(release, "uninstall", "kueueweb")
    assert stored(plane, "deployments")["items"] == []
    assert stored(plane, "pvc", "postgresql")["spec"]["resources"]["requests"] == {"storage": "8Gi"}
    done(release, "install", "kueueweb", str(CHART), *trial)
    assert stored(plane, "secret", "postgresql")["data"] == before["postgresql"], "the volume has no other password"


def test_a_change_of_the_configuration_starts_the_pods_again(plane: ControlPlane, release: Path) -> None:
    done(release, "install", "kueueweb", str(CHART))
    before = stored(plane, "deployment", "beat")["spec"]["template"]["metadata"]["annotations"]
    done(release, "upgrade", "kueueweb", str(CHART), "--set=config.LOG_LEVEL=DEBUG")
    assert stored(plane, "deployment", "beat")["spec"]["template"]["metadata"]["annotations"] != before


def test_an_upgrade_leaves_alone_what_the_webhook_wrote(plane: ControlPlane, release: Path) -> None:
    """It writes its authority into both configurations, and its certificates into a Secret that comes empty."""
    done(release, "install", "kueueweb", str(CHART))
    for kind, item in webhook_configurations(Target("kueueweb", "webhook", authorities=b"an authority")):
        plane.admin.apply(kind, item)
    plane.admin.patch(SECRETS, "kueueweb", "webhook-certificates", {"data": {"tls.crt": "YQ=="}})
    done(release, "upgrade", "kueueweb", str(CHART), "--set=config.LOG_LEVEL=DEBUG")
    for name in ("mutatingwebhookconfiguration", "validatingwebhookconfiguration"):
        webhooks = stored(plane, name, "admission.kueueweb.io")["webhooks"]
        authority = base64.b64encode(b"an authority").decode()
        assert {each["clientConfig"].get("caBundle") for each in webhooks} == {authority}
    assert stored(plane, "secret", "webhook-certificates")["data"] == {"tls.crt": "YQ=="}


def test_an_installation_of_the_plain_manifests_becomes_a_release(plane: ControlPlane, release: Path) -> None:
    plane.kubectl("apply", "-k", str(PLAIN))
    uid = stored(plane, "deployment", "web")["metadata"]["uid"]
    done(
        release, "upgrade", "kueueweb", str(CHART), "--install", "--take-ownership", "--force-conflicts",
        "--set=push.replicas=3",
    )  # fmt: skip
    assert stored(plane, "deployment", "web")["metadata"]["uid"] == uid
    assert stored(plane, "deployment", "push")["spec"]["replicas"] == 3


def test_nothing_of_a_release_stays_but_what_is_to_be_kept(plane: ControlPlane, release: Path) -> None:
    done(release, "install", "kueueweb", str(CHART), *sets(postgresql__enabled="true", tenants__all="true"))
    done(release, "uninstall", "kueueweb")
    kinds = "deployments,services,secrets,configmaps,pvc,roles,rolebindings,networkpolicies,pdb,serviceaccounts"
    names = plane.kubectl("get", kinds, "--namespace", "kueueweb", "-o", "name").split()
    ours = {name for name in names if "kube-root-ca" not in name and name != "serviceaccount/default"}
    assert ours == {"secret/postgresql", "persistentvolumeclaim/postgresql"}
    wide = "clusterroles,clusterrolebindings,mutatingwebhookconfigurations,validatingwebhookconfigurations"
    assert "kueueweb" not in plane.kubectl("get", wide, "-o", "name")
