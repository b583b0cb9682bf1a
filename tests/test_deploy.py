"""deploy/kubernetes as written: accounts that are least, limits, policies (S13, S15)."""

from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).resolve().parent.parent / "deploy" / "kubernetes"


def objects(kind: str) -> list[dict[str, Any]]:
    files = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())["resources"]
    found = [each for file in files for each in yaml.safe_load_all((FOLDER / file).read_text())]
    return [each for each in found if each["kind"] == kind]


def test_the_watcher_only_reads_and_nobody_else_has_an_account() -> None:
    rules = {role["metadata"]["name"]: role["rules"] for role in objects("ClusterRole")}
    granted = [
        binding["roleRef"]["name"]
        for binding in objects("ClusterRoleBinding")
        if "kueueweb-watcher" in {subject["name"] for subject in binding["subjects"]}
    ]
    assert granted
    assert {verb for role in granted for rule in rules[role] for verb in rule["verbs"]} == {"get", "list", "watch"}
    pods = {each["metadata"]["name"]: each["spec"]["template"]["spec"] for each in objects("Deployment")}
    accounts = {name: pod["serviceAccountName"] for name, pod in pods.items()}
    assert accounts == {
        "web": "default",
        "scheduler": "default",
        "push": "kueueweb-push",
        "beat": "default",
        "watcher": "kueueweb-watcher",
    }


def test_every_container_has_a_limit_of_memory() -> None:
    for each in objects("Deployment"):
        for container in each["spec"]["template"]["spec"]["containers"]:
            assert "memory" in container["resources"]["limits"], each["metadata"]["name"]


def test_nobody_connects_but_to_web() -> None:
    policies = {each["metadata"]["name"]: each["spec"] for each in objects("NetworkPolicy")}
    assert "ingress" not in policies["nobody-connects"]
    assert policies["nobody-connects"]["podSelector"]["matchLabels"] == {"app.kubernetes.io/name": "kueueweb"}
    assert {each["metadata"]["name"] for each in objects("PodDisruptionBudget")} == {"web", "scheduler"}


def test_the_example_reaches_its_servers_by_tls_and_with_passwords_only() -> None:
    secret = objects("Secret")[0]["stringData"]
    assert "sslmode=verify-full" in secret["DATABASE_URL"]
    assert secret["REDIS_URL"].startswith("rediss://:")
