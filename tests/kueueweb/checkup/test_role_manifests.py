"""The rights that `manage.py doctor` asks for are those of deploy/kubernetes."""

from __future__ import annotations

import tomllib
from pathlib import Path

from kueueweb.checkup.role_manifests import Right, rights_of

ROOT = Path(__file__).resolve().parents[3]


def rights(account: str, *files: str, tenants: tuple[str, ...] = ()) -> set[Right]:
    return set(rights_of(account, files, own_namespace="gpu", tenants=tenants))


def test_each_binding_gives_its_role_where_it_binds() -> None:
    push = rights("kueueweb-push", "rbac.yaml", "tenant.yaml", tenants=("team", "lab"))
    assert Right("kueueweb-read", "", "", "pods", "watch") in push
    assert Right("kueueweb-locks", "", "", "nodes", "patch") in push
    assert {right.namespace for right in push if right.role == "kueueweb-tenant"} == {"team", "lab"}
    assert Right("kueueweb-tenant", "lab", "batch", "jobs", "create") in push
    assert Right("kueueweb-push-lease", "kueueweb", "coordination.k8s.io", "leases", "get", "push.kueueweb.io") in push
    assert rights("kueueweb-web", "rbac.yaml") == set()
    assert rights("kueueweb-web", "tenant.yaml", tenants=("team",)) == {
        Right("kueueweb-logs", "team", "", "pods/log", "get")
    }


def test_the_webhook_s_secret_is_where_the_installation_is() -> None:
    secret = Right("kueueweb-webhook", "gpu", "", "secrets", "get", "webhook-certificates")
    assert secret in rights("kueueweb-webhook", "webhook.yaml")
    assert str(secret) == "get secrets/webhook-certificates"


def test_the_image_and_the_wheel_have_the_manifests() -> None:
    assert "COPY deploy/kubernetes kueueweb/kubernetes" in (ROOT / "Dockerfile").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    included = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert included["deploy/kubernetes"] == "kueueweb/kubernetes"
