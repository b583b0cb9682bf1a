"""deploy/kubernetes as written: accounts that are least, limits, policies."""

import hashlib
import os
import re
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.exceptions import ImproperlyConfigured

from clusters.api_objects import EVENTS, Kind
from clusters.management.commands import job_rules
from clusters.push.kueue_objects.served_status import KEYS
from clusters.served.kueue_kinds import GROUP, KUEUE_KINDS, PRIORITY_CLASSES
from clusters.served.pending_workloads import GROUP as VISIBILITY
from clusters.served.pending_workloads import VERSIONS
from clusters.webhook.configurations import Target, webhook_configurations
from clusters.webhook.visibility import ApiServices
from kueueweb import env
from scripts import pin_images

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "deploy" / "kubernetes"


class Recorder:
    """In the place of a client: what would be applied."""

    def __init__(self, applied: list[dict[str, Any]]) -> None:
        self._applied = applied

    def apply(self, kind: Kind, item: Any) -> dict[str, Any]:
        self._applied.append(item)
        return dict(item)


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
        "web": "kueueweb-web",
        "scheduler": "default",
        "push": "kueueweb-push",
        "beat": "default",
        "studio": "default",
        "watcher": "kueueweb-watcher",
        "webhook": "kueueweb-webhook",
    }


def test_the_watcher_may_read_all_that_it_mirrors_of_another_scheduler() -> None:
    """The role names each kind that mode observe follows, and nothing that it does not."""
    rules = {role["metadata"]["name"]: role["rules"] for role in objects("ClusterRole")}
    read = {
        (group, kind) for rule in rules["kueueweb-observe"] for group in rule["apiGroups"] for kind in rule["resources"]
    }
    kueues = {(GROUP, kinds[0].plural) for kinds in KUEUE_KINDS.values()}
    assert read == kueues | {("scheduling.k8s.io", PRIORITY_CLASSES.plural), ("", EVENTS.plural)}
    assert {verb for rule in rules["kueueweb-observe"] for verb in rule["verbs"]} == {"get", "list", "watch"}
    common = {kind for rule in rules["kueueweb-read"] for kind in rule["resources"]}
    assert {"namespaces", "nodes", "pods", "jobs"} <= common


def test_the_push_may_write_all_kueue_objects_that_it_serves_and_the_status_of_some() -> None:
    documents = list(yaml.safe_load_all((FOLDER / "served.yaml").read_text()))
    role, converter, converts, binding = documents
    assert [subject["name"] for subject in binding["subjects"]] == ["kueueweb-push"]
    assert [subject["name"] for subject in converts["subjects"]] == ["kueueweb-webhook"]
    definitions, classes = converter["rules"]
    assert set(definitions["resourceNames"]) == {f"{kinds[0].plural}.{GROUP}" for kinds in KUEUE_KINDS.values()}
    assert definitions["verbs"] == ["get", "patch"]
    assert (classes["resources"], classes["verbs"]) == (["workloadpriorityclasses"], ["get"])
    objects, statuses = role["rules"][:2]
    assert set(objects["resources"]) == {kinds[0].plural for kinds in KUEUE_KINDS.values()}
    assert {"create", "update", "patch", "delete"} <= set(objects["verbs"])
    assert {f"{KUEUE_KINDS[kind][0].plural}/status" for kind in KEYS} <= set(statuses["resources"])
    assert all("*" not in rule["resources"] + rule["verbs"] for rule in role["rules"])


def test_the_visibility_api_reads_who_may_call_it_and_writes_where_it_is_and_nothing_else() -> None:
    found = list(yaml.safe_load_all((FOLDER / "visibility.yaml").read_text()))
    rules = [rule for each in found if each["kind"] in ("Role", "ClusterRole") for rule in each["rules"]]
    granted = {(resource, verb) for rule in rules for resource in rule["resources"] for verb in rule["verbs"]}
    assert granted == {
        ("apiservices", "get"), ("apiservices", "patch"), ("secrets", "get"), ("secrets", "patch"),
        ("clusterqueues/pendingworkloads", "get"), ("localqueues/pendingworkloads", "get"),
    }  # fmt: skip
    services = {each["metadata"]["name"]: each["spec"] for each in found if each["kind"] == "APIService"}
    assert set(services) == {f"{version}.{VISIBILITY}" for version in VERSIONS}
    written: list[dict[str, Any]] = []
    ApiServices(Recorder(written), Target("kueueweb", "visibility")).write(None)
    assert {each["metadata"]["name"]: each["spec"] for each in written} == services
    [service] = [each for each in found if each["kind"] == "Service"]
    assert service["metadata"]["name"] == services[f"v1beta2.{VISIBILITY}"]["service"]["name"]


def test_the_webhook_writes_its_own_configurations_and_certificates_and_nothing_else() -> None:
    bindings = [*objects("ClusterRoleBinding"), *objects("RoleBinding")]
    given = {each["roleRef"]["name"] for each in bindings if each["subjects"][0]["name"] == "kueueweb-webhook"}
    assert given == {"kueueweb-read", "kueueweb-webhook"}
    rules = [
        rule
        for role in (*objects("ClusterRole"), *objects("Role"))
        for rule in role["rules"]
        if role["metadata"]["name"] in given and set(rule["verbs"]) - {"get", "list", "watch"}
    ]
    assert [(rule["resources"], rule["resourceNames"]) for rule in rules] == [
        (["mutatingwebhookconfigurations", "validatingwebhookconfigurations"], ["admission.kueueweb.io"]),
        (["secrets"], ["webhook-certificates"]),
    ]
    assert all(rule["verbs"] == ["get", "patch"] for rule in rules)


def test_the_webhook_configurations_are_those_that_the_product_writes() -> None:
    wanted = [found for _, found in webhook_configurations(Target("kueueweb", "webhook"))]
    shipped = [*objects("MutatingWebhookConfiguration"), *objects("ValidatingWebhookConfiguration")]
    assert shipped == wanted
    [service] = [each for each in objects("Service") if each["metadata"]["name"] == "webhook"]
    assert service["spec"]["ports"][0]["port"] == wanted[0]["webhooks"][0]["clientConfig"]["service"]["port"]


def test_the_rules_for_jobs_are_those_that_follow_from_their_kinds() -> None:
    for name in job_rules.FILES:
        text = (FOLDER / name).read_text()
        assert job_rules.with_rules(name, text) == text, "run manage.py job_rules"

    other = (FOLDER / "rbac.yaml").read_text().replace("paddlejobs, ", "")
    assert "paddlejobs" in job_rules.with_rules("rbac.yaml", other)


def test_what_names_a_queue_fails_closed_and_the_rest_open() -> None:
    for configuration in (*objects("MutatingWebhookConfiguration"), *objects("ValidatingWebhookConfiguration")):
        policies: dict[str, set[tuple[str, str]]] = {}
        for each in configuration["webhooks"]:
            if each["name"].startswith(("objects.kueue.", "flows.")):
                assert each["failurePolicy"] == "Ignore"  # the watcher checks what nobody has checked
                continue
            if each["name"].startswith("flavors.kueue."):
                assert each["failurePolicy"] == "Fail"  # a dry run of one says whether the webhook answers
                assert [(rule["operations"], rule["resources"]) for rule in each["rules"]] == [
                    (["CREATE"], ["resourceflavors"])
                ]
                continue
            [expression] = each["objectSelector"]["matchExpressions"]
            assert expression["key"] == "kueue.x-k8s.io/queue-name"
            policies.setdefault(each["clientConfig"]["service"]["path"], set()).add(
                (expression["operator"], each["failurePolicy"])
            )
        assert all(found == {("Exists", "Fail"), ("DoesNotExist", "Ignore")} for found in policies.values())


def test_web_reads_logs_where_tenants_are_and_nothing_else() -> None:
    bound = {
        binding["roleRef"]["name"]
        for binding in (*objects("ClusterRoleBinding"), *objects("RoleBinding"))
        if "kueueweb-web" in {subject["name"] for subject in binding["subjects"]}
    }
    assert bound == set()
    tenant = list(yaml.safe_load_all((FOLDER / "tenant.yaml").read_text()))
    given = {each["subjects"][0]["name"]: each["roleRef"]["name"] for each in tenant}
    assert given == {
        "kueueweb-push": "kueueweb-tenant",
        "kueueweb-watcher": "kueueweb-suspend",
        "kueueweb-web": "kueueweb-logs",
    }
    everywhere = list(yaml.safe_load_all((FOLDER / "all-tenants.yaml").read_text()))
    assert {each["kind"] for each in everywhere} == {"ClusterRoleBinding"}
    assert {each["subjects"][0]["name"]: each["roleRef"]["name"] for each in everywhere} == given
    rules = {role["metadata"]["name"]: role["rules"] for role in objects("ClusterRole")}
    assert rules["kueueweb-logs"] == [{"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]}]
    assert {verb for rule in rules["kueueweb-suspend"] for verb in rule["verbs"]} == {"patch"}


def containers() -> list[tuple[str, dict[str, Any]]]:
    """All containers with the names of their Deployments, those that prepare included."""
    pods = [(each["metadata"]["name"], each["spec"]["template"]["spec"]) for each in objects("Deployment")]
    return [(name, each) for name, pod in pods for each in [*pod.get("initContainers", ()), *pod["containers"]]]


def test_every_container_has_a_limit_and_writes_nothing_but_temporary_files() -> None:
    for name, container in containers():
        assert "memory" in container["resources"]["limits"], name
        assert container["securityContext"]["readOnlyRootFilesystem"], name
        assert container["volumeMounts"] == [{"name": "tmp", "mountPath": "/tmp"}], name


def test_every_process_is_asked_whether_it_lives() -> None:
    """Workers, beat and watcher had no liveness probe."""
    for name, container in containers():
        if name == "web":
            continue
        [beating] = [each["value"] for each in container["env"] if each["name"] == "HEARTBEAT_PATH"]
        assert beating in container["livenessProbe"]["exec"]["command"][-1], name


def test_a_probe_finds_a_fresh_heartbeat_and_no_old_one(tmp_path: Path) -> None:
    [command] = {tuple(each["livenessProbe"]["exec"]["command"]) for name, each in containers() if name != "web"}
    alive = tmp_path / "alive"
    here = [word.replace("/tmp/alive", str(alive)) for word in command]
    assert subprocess.run(here, capture_output=True, check=False).returncode != 0
    alive.touch()
    assert subprocess.run(here, check=False).returncode == 0
    os.utime(alive, (time.time() - 400, time.time() - 400))
    assert subprocess.run(here, check=False).returncode != 0


def test_images_have_digests() -> None:
    """A tag can change under whoever starts it. Our own image's digest is its builder's to write."""
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    named = {each["image"] for each in compose.values() if each["image"] != "kueueweb"}
    named |= set(re.findall(r"^FROM (\S+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE))
    assert len(named) == 3
    for image in named:
        assert re.fullmatch(r"[\w./-]+:\d[\w.-]*\.\d+[\w.-]*@sha256:[0-9a-f]{64}", image), image
        assert len(set(image[-64:])) > 8, "invented"
    assert {each["image"] for _, each in containers()} == {"kueueweb"}
    [own] = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())["images"]
    assert (own["name"], own["digest"]) == ("kueueweb", "sha256:not-written-yet")


def test_one_command_builds_the_image_for_both_platforms() -> None:
    make = ["make", "--no-print-directory", "images"]
    done = subprocess.run([*make, "--dry-run", "IMAGE=r/k:1"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "--platform linux/amd64,linux/arm64 --tag r/k:1 --push ." in done.stdout
    unnamed = subprocess.run(make, cwd=ROOT, capture_output=True, text=True, check=False)
    assert unnamed.returncode == 2
    assert unnamed.stdout.startswith("IMAGE: Required value")


def test_digests_are_written_where_images_are_named() -> None:
    def digest(image: str) -> str:
        return f"sha256:{hashlib.sha256(image.encode()).hexdigest()}"

    for file in pin_images.FILES:
        text = (ROOT / file).read_text()
        written = pin_images.pinned(text, digest)
        assert pin_images.pinned(written, digest) == written
        assert re.sub("[0-9a-f]{64}", "", written) == re.sub("[0-9a-f]{64}", "", text), "only digests change"
        assert written != text
    own = "registry.example.org:5000/team/kueueweb:1.0"
    text = pin_images.with_own_image((FOLDER / "kustomization.yaml").read_text(), own, digest)
    [image] = yaml.safe_load(text)["images"]
    assert image == {"name": "kueueweb", "newName": "registry.example.org:5000/team/kueueweb", "digest": digest(own)}
    assert pin_images.with_own_image(text, own, digest) == text


def test_nobody_connects_but_to_web_and_the_webhook() -> None:
    policies = {each["metadata"]["name"]: each["spec"] for each in objects("NetworkPolicy")}
    assert "ingress" not in policies["nobody-connects"]
    assert policies["nobody-connects"]["podSelector"]["matchLabels"] == {"app.kubernetes.io/name": "kueueweb"}
    [rule] = policies["webhook-from-the-api-server"]["ingress"]
    assert all(each["ipBlock"]["except"] for each in rule["from"]), "pods of tenants do not reach the webhook"
    assert {each["metadata"]["name"] for each in objects("PodDisruptionBudget")} == {
        "web",
        "scheduler",
        "push",
        "webhook",
    }


READERS: dict[str, Callable[[str], object]] = {
    "DATABASE_URL": env.database,
    "REDIS_URL": partial(env.redis_url, default=""),
    "SECRET_KEY": env.secret,
    "ADMISSION_CHECK_SIGNING_KEY": env.secret,
}


def test_no_process_starts_with_a_secret_as_it_is_shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refused value stops a process: tests/kueueweb/test_settings.py."""
    shipped = objects("Secret")[0]["stringData"]
    assert set(shipped) == set(READERS)
    for name, value in shipped.items():
        monkeypatch.setenv(name, value)
        with pytest.raises(ImproperlyConfigured, match=f"{name} is a placeholder"):
            READERS[name](name)


def test_the_example_reaches_its_servers_by_tls_and_with_passwords_only() -> None:
    secret = objects("Secret")[0]["stringData"]
    assert "sslmode=verify-full" in secret["DATABASE_URL"]
    assert secret["REDIS_URL"].startswith("rediss://:")
