"""The chart renders the objects of deploy/kubernetes, changed by its values and by nothing else."""

from __future__ import annotations

import copy
import re
from typing import Any, Final

import pytest
import yaml

from tests.helm.chart import CHART, ROOT, Object, by_name, helm, pods, rendered, sets

PLAIN: Final = ROOT / "deploy" / "kubernetes"
GENERATED: Final = ("SECRET_KEY", "ADMISSION_CHECK_SIGNING_KEY")
IMAGE: Final = sets(image__repository="r.example.org/k", image__tag="1.0")
EVERYTHING: Final = sets(
    visibility__enabled="true", serveKueueObjects="true", switching__enabled="true", multiKueue__manager="true",
    multiKueue__worker="true", tenants__all="true", **{"tenants__namespaces[0]": "research"}, ingress__enabled="true",
    enablePrometheus="true", metrics__dashboards__enabled="true", web__autoscaling__enabled="true",
    postgresql__enabled="true", valkey__enabled="true",
)  # fmt: skip


def documents(*files: str) -> list[Object]:
    return [item for file in files for item in yaml.safe_load_all((PLAIN / file).read_text()) if item]


def plain() -> list[Object]:
    """The objects of `kubectl apply -k`, but for the namespace, which `helm --create-namespace` makes."""
    kustomization = yaml.safe_load((PLAIN / "kustomization.yaml").read_text())
    [image] = kustomization["images"]
    objects = documents(*(file for file in kustomization["resources"] if file != "namespace.yaml"))
    for pod in pods(objects).values():
        for container in (*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]):
            assert container["image"] == image["name"]
            container["image"] = f"{image['newName']}@{image['digest']}"
    return objects


def without_checksums(objects: list[Object]) -> list[Object]:
    """Pods start again when their configuration changes: kustomize has no such thing."""
    found = copy.deepcopy(objects)
    for pod in pods(found).values():
        assert re.fullmatch("[0-9a-f]{64}", pod["metadata"]["annotations"].pop("checksum/configuration"))
        if not pod["metadata"]["annotations"]:
            del pod["metadata"]["annotations"]
    return found


def test_without_values_the_chart_is_the_plain_manifests_object_for_object() -> None:
    chart, wanted = by_name(without_checksums(rendered())), by_name(plain())
    secret = chart["Secret", "kueueweb", "kueueweb"]["stringData"]
    for name in GENERATED:
        assert re.fullmatch("[0-9A-Za-z]{48}", secret[name])
        secret[name] = wanted["Secret", "kueueweb", "kueueweb"]["stringData"][name]
    assert set(chart) == set(wanted)
    assert {key for key, item in chart.items() if item != wanted[key]} == set()


@pytest.mark.parametrize(
    ("arguments", "files"),
    [
        (sets(visibility__enabled="true"), ["visibility.yaml"]),
        (sets(serveKueueObjects="true"), ["served.yaml"]),
        (sets(switching__enabled="true"), ["switch.yaml"]),
        (sets(multiKueue__manager="true", multiKueue__worker="true"), ["multikueue.yaml"]),
        (sets(tenants__all="true"), ["all-tenants.yaml"]),
    ],
)
def test_each_file_beside_the_kustomization_is_a_value(arguments: list[str], files: list[str]) -> None:
    added = by_name(without_checksums(rendered(*arguments)))
    for key in by_name(rendered()):
        del added[key]
    wanted = documents(*files)
    for pod in pods(wanted).values():
        pod["spec"]["containers"][0]["image"] = "registry.example.org/kueueweb@sha256:not-written-yet"
    assert added == by_name(wanted)


def test_no_file_of_the_plain_manifests_is_forgotten() -> None:
    templates = "".join(path.read_text() for path in (CHART / "templates").glob("*.yaml"))
    left = {path.name for path in PLAIN.glob("*.yaml") if f'"{path.name}"' not in templates}
    assert left == {"kustomization.yaml", "namespace.yaml"}


def test_a_tenant_s_namespace_has_the_bindings_of_the_plain_file() -> None:
    objects = by_name(rendered("--set=tenants.namespaces={research,teaching}"))
    for namespace in ("research", "teaching"):
        for binding in documents("tenant.yaml"):
            binding["metadata"]["namespace"] = namespace
            assert objects["RoleBinding", namespace, binding["metadata"]["name"]] == binding


def test_the_rules_and_dashboards_are_those_of_deploy_monitoring() -> None:
    objects = by_name(rendered(*EVERYTHING))
    rules = yaml.safe_load((ROOT / "deploy" / "monitoring" / "rules.yaml").read_text())
    assert objects["PrometheusRule", "kueueweb", "kueueweb"]["spec"] == rules
    for path in (ROOT / "deploy" / "monitoring").glob("grafana-*.json"):
        dashboard = objects["ConfigMap", "kueueweb", f"kueueweb-{path.stem}"]
        assert dashboard["data"] == {path.name: path.read_text()}
        assert dashboard["metadata"]["labels"]["grafana_dashboard"] == "1"


def test_prometheus_scrapes_the_service_once_and_under_a_name_that_is_allowed() -> None:
    objects = by_name(rendered("--set=enablePrometheus=true", namespace="gpu"))
    monitor = objects["ServiceMonitor", "gpu", "kueueweb"]["spec"]
    service = objects["Service", "gpu", "kueueweb"]
    assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    [endpoint] = monitor["endpoints"]
    assert endpoint["port"] == service["spec"]["ports"][0]["name"]
    [address, dropped] = endpoint["relabelings"]
    host, _, port = address["replacement"].partition(":")
    assert int(port) == service["spec"]["ports"][0]["port"]
    assert host in objects["ConfigMap", "gpu", "kueueweb"]["data"]["ALLOWED_HOSTS"].split(",")
    assert all(re.fullmatch(dropped["regex"], label) for label in ("pod", "container"))


def test_in_another_namespace_nothing_refers_to_ours_but_the_lease() -> None:
    """The lease by which installations find each other has one place in a cluster."""
    objects = rendered(*EVERYTHING, namespace="gpu-1")
    configuration = by_name(objects)["ConfigMap", "gpu-1", "kueueweb"]["data"]
    assert configuration["WEBHOOK_TRUSTED_USERS"] == "system:serviceaccount:gpu-1:kueueweb-push"
    assert configuration["CLOSED_NAMESPACES"] == "kube-*,gpu-1"
    for item in objects:
        name = item["metadata"]["name"]
        if item["kind"] == "Namespace" or name == "kueueweb-push-lease":
            assert item["metadata"].get("namespace", name) in {"kueueweb", name}
            continue
        assert item["metadata"].get("namespace") in {None, "gpu-1", "kueue-system", "kube-system", "research"}, name
        assert list(namespaces(item)) == [], name
    for name in ("webhook", "visibility"):
        [container] = pods(objects)[name]["spec"]["containers"]
        assert container["command"][-2:] == ["--namespace", "gpu-1"]
    [mutating] = [each for each in objects if each["kind"] == "MutatingWebhookConfiguration"]
    [expression] = mutating["webhooks"][0]["namespaceSelector"]["matchExpressions"]
    assert expression["values"] == ["gpu-1", "kube-node-lease", "kube-public", "kube-system"]


def namespaces(value: Any) -> Any:
    """The values of `namespace` in any depth that name the namespace of the plain manifests."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "namespace" and inner == "kueueweb":
                yield inner
            yield from namespaces(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from namespaces(inner)


def test_values_of_a_role_count_more_than_those_of_all() -> None:
    values = """
nodeSelector: {pool: infra}
tolerations: [{key: infra, operator: Exists}]
priorityClassName: system-cluster-critical
podAnnotations: {team: platform}
env: [{name: LOG_LEVEL, value: DEBUG}]
extraVolumes: [{name: ca, configMap: {name: ca}}]
extraVolumeMounts: [{name: ca, mountPath: /etc/ca}]
image: {repository: r.example.org/k, tag: "1.0", pullPolicy: Always}
imagePullSecrets: [{name: pull}]
web:
  nodeSelector: {pool: web}
  replicas: 3
  env: [{name: LOG_FORMAT, value: console}]
  resources: {limits: {memory: 2Gi}}
  topologySpreadConstraints: [{maxSkew: 2, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]
"""
    path = CHART.parents[2] / ".run" / "values-of-a-role.yaml"
    path.write_text(values)
    try:
        objects = rendered("--values", str(path))
    finally:
        path.unlink()
    found = pods(objects)
    assert found["push"]["spec"]["nodeSelector"] == {"pool": "infra"}
    assert found["web"]["spec"]["nodeSelector"] == {"pool": "web"}
    assert by_name(objects)["Deployment", "kueueweb", "web"]["spec"]["replicas"] == 3
    assert [each["topologyKey"] for each in found["web"]["spec"]["topologySpreadConstraints"]] == ["zone"]
    for name, pod in found.items():
        assert pod["metadata"]["annotations"]["team"] == "platform"
        assert pod["spec"]["tolerations"] == [{"key": "infra", "operator": "Exists"}]
        assert pod["spec"]["imagePullSecrets"] == [{"name": "pull"}]
        assert {each["name"] for each in pod["spec"]["volumes"]} == {"tmp", "ca"}
        for container in (*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]):
            assert (container["image"], container["imagePullPolicy"]) == ("r.example.org/k:1.0", "Always")
            variables = {each["name"]: each["value"] for each in container["env"]}
            assert variables["LOG_LEVEL"] == "DEBUG"
            assert ("LOG_FORMAT" in variables) is (name == "web")
            limit = "2Gi" if name == "web" else {"scheduler": "4Gi", "studio": "4Gi", "beat": "512Mi"}.get(name, "1Gi")
            assert container["resources"]["limits"]["memory"] == limit


def test_servers_come_from_secrets_of_others() -> None:
    objects = rendered(*sets(database__existingSecret__name="pg-app", database__existingSecret__key="uri"))
    assert "DATABASE_URL" not in by_name(objects)["Secret", "kueueweb", "kueueweb"]["stringData"]
    for pod in pods(objects).values():
        for container in (*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]):
            reference = {"secretKeyRef": {"name": "pg-app", "key": "uri"}}
            assert {"name": "DATABASE_URL", "valueFrom": reference} in container["env"]

    objects = rendered("--set=existingSecret=ours")
    assert not [each for each in objects if each["kind"] == "Secret" and each["metadata"]["name"] == "kueueweb"]
    for pod in pods(objects).values():
        assert {"secretRef": {"name": "ours"}} in pod["spec"]["containers"][0]["envFrom"]


def test_a_trial_has_one_password_for_each_server_and_its_client() -> None:
    found = by_name(rendered(*sets(postgresql__enabled="true", valkey__enabled="true")))
    secret = found["Secret", "kueueweb", "kueueweb"]["stringData"]
    password = found["Secret", "kueueweb", "postgresql"]["stringData"]["password"]
    assert secret["DATABASE_URL"] == f"postgresql://kueueweb:{password}@postgresql:5432/kueueweb"
    assert (
        secret["REDIS_URL"]
        == f"redis://:{found['Secret', 'kueueweb', 'valkey']['stringData']['password']}@valkey:6379/0"
    )
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    for name, service in (("postgresql", "postgres"), ("valkey", "redis")):
        [container] = found["Deployment", "kueueweb", name]["spec"]["template"]["spec"]["containers"]
        assert container["image"] == compose[service]["image"]
        assert container["securityContext"]["readOnlyRootFilesystem"]


def test_autoscaling_leaves_the_number_of_web_pods_to_the_autoscaler() -> None:
    found = by_name(rendered("--set=web.autoscaling.enabled=true"))
    assert "replicas" not in found["Deployment", "kueueweb", "web"]["spec"]
    assert found["HorizontalPodAutoscaler", "kueueweb", "web"]["spec"]["scaleTargetRef"]["name"] == "web"


def test_the_ingress_serves_the_host_and_the_base_path() -> None:
    arguments = sets(ingress__enabled="true", host="gpu.example.org", config__BASE_PATH="/kueueweb")
    found = by_name(rendered(*arguments, *sets(ingress__ingressClassName="nginx", ingress__tlsSecretName="tls")))
    spec = found["Ingress", "kueueweb", "kueueweb"]["spec"]
    assert spec["tls"] == [{"hosts": ["gpu.example.org"], "secretName": "tls"}]
    [rule] = spec["rules"]
    [path] = rule["http"]["paths"]
    assert (rule["host"], path["path"]) == ("gpu.example.org", "/kueueweb")
    data = found["ConfigMap", "kueueweb", "kueueweb"]["data"]
    assert (data["ALLOWED_HOSTS"], data["CSRF_TRUSTED_ORIGINS"]) == ("gpu.example.org", "https://gpu.example.org")
    assert data["BEHIND_TLS_PROXY"] == "true"


def test_the_api_server_s_addresses_take_the_place_of_all_but_pods() -> None:
    policy = ("NetworkPolicy", "kueueweb", "webhook-from-the-api-server")
    [rule] = by_name(rendered("--set=networkPolicy.apiServerCIDRs={10.0.0.1/32}"))[policy]["spec"]["ingress"]
    assert rule["from"] == [{"ipBlock": {"cidr": "10.0.0.1/32"}}]
    [rule] = by_name(rendered("--set=networkPolicy.podCIDRs={10.1.0.0/16,fd01::/48}"))[policy]["spec"]["ingress"]
    assert [each["ipBlock"]["except"] for each in rule["from"]] == [["10.1.0.0/16"], ["fd01::/48"]]
    assert not [each for each in rendered("--set=networkPolicy.enabled=false") if each["kind"] == "NetworkPolicy"]


def test_an_observed_cluster_gets_no_webhook() -> None:
    names = {each["metadata"]["name"] for each in rendered("--set=webhook.enabled=false")}
    assert not {name for name in names if "webhook" in name or "admission" in name}


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ("web.replica=3", "/web"),
        ("beat.replicas=2", "/beat"),
        ("watcher.replicas=2", "/watcher"),
        ("scheduler.replicas=0", "/scheduler/replicas"),
        ("studio.podDisruptionBudget.enabled=true", "/studio"),
        ("image.digest=latest", "/image/digest"),
        ("tenants.namespaces={kube-system}", "/tenants/namespaces/0"),
        ("postgresql.password=short", "/postgresql/password"),
        ("config.lower=1", "/config"),
        ("databse.url=postgresql://h/d", "databse"),
    ],
)
def test_a_wrong_value_is_refused_with_its_path(value: str, path: str) -> None:
    done = helm("template", "kueueweb", str(CHART), "--set", value)
    assert done.returncode != 0
    assert path in done.stderr


@pytest.mark.parametrize("namespace", ["kueueweb", "gpu"])
def test_no_job_runs_beside_our_own_accounts(namespace: str) -> None:
    arguments = ("--namespace", "gpu", f"--set=tenants.namespaces={{research,{namespace}}}")
    done = helm("template", "kueueweb", str(CHART), *arguments)
    assert done.returncode != 0
    assert f'tenants.namespaces: Invalid value: "{namespace}"' in done.stderr


def test_helm_test_runs_the_doctor_as_push_does() -> None:
    found = by_name(rendered(*IMAGE, namespace="gpu", with_tests=True))
    doctor, push = found["Pod", "gpu", "doctor"], found["Deployment", "gpu", "push"]["spec"]["template"]
    assert doctor["metadata"]["annotations"]["helm.sh/hook"] == "test"
    assert doctor["spec"]["restartPolicy"] == "Never"
    assert doctor["spec"]["serviceAccountName"] == "kueueweb-push"
    [container], [worker] = doctor["spec"]["containers"], push["spec"]["containers"]
    assert container["command"] == ["python", "manage.py", "doctor"]
    for field in ("image", "envFrom", "env", "securityContext", "resources", "volumeMounts"):
        assert container[field] == worker[field]


def test_helm_finds_nothing_to_complain_of() -> None:
    for arguments in ([], EVERYTHING):
        done = helm("lint", "--strict", str(CHART), *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "[WARNING]" not in done.stdout


def test_the_notes_name_each_value_that_is_still_missing() -> None:
    notes = helm("install", "kueueweb", str(CHART), "--dry-run=client", "--namespace", "kueueweb").stdout
    assert set(re.findall(r"^(\S+?)(?: \(or .*\))?: Required value", notes, re.MULTILINE)) == {
        "image.digest", "database.url", "redis.url",
    }  # fmt: skip
    done = helm(
        "install", "kueueweb", str(CHART), "--dry-run=client", "--namespace", "kueueweb", "--set=image.tag=1.0",
        *sets(postgresql__enabled="true", valkey__enabled="true", tenants__all="true"),
    )  # fmt: skip
    assert "Required value" not in done.stdout
    assert "Jobs run in no namespace" not in done.stdout


def test_a_package_holds_all_that_the_chart_links_to(tmp_path: Any) -> None:
    done = helm("package", str(CHART), "--destination", str(tmp_path))
    assert done.returncode == 0, done.stderr
    [package] = tmp_path.glob("kueueweb-*.tgz")
    out = helm(
        "template",
        "kueueweb",
        str(package),
        "--namespace",
        "kueueweb",
        *sets(secretKey="s", admissionCheckSigningKey="a"),
    )
    again = helm(
        "template",
        "kueueweb",
        str(CHART),
        "--namespace",
        "kueueweb",
        *sets(secretKey="s", admissionCheckSigningKey="a"),
    )
    assert out.returncode == 0, out.stderr
    assert out.stdout == again.stdout
