"""`manage.py doctor` on a real API server: rights, definitions, schedulers and the webhook, each broken for real."""

from __future__ import annotations

import base64

import pytest

from clusters.api_objects import SECRETS, JsonObject, Kind
from clusters.webhook.certificates import renewed
from clusters.webhook.configurations import Target, webhook_configurations
from kueueweb.checkup.cluster_checks import cluster_checks
from kueueweb.checkup.finding import Finding
from kueueweb.checkup.webhook_checks import webhook_checks
from queues.models import Workload
from tests.acceptance.processes import wait_for
from tests.clusters.webhook.served import ServedWebhook
from tests.factories import START
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.system import System, documents, kind_of

BINDINGS = Kind("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False)
READ = ("ClusterRole", "kueueweb-read")
ROLES = Kind("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", namespaced=False)


def as_account(plane: ControlPlane, system: System, account: str) -> list[Finding]:
    client = plane.client(plane.token_of("kueueweb", account))
    return list(cluster_checks(system.cluster, client, ["team"]))


def of_check(findings: list[Finding], check: str) -> list[Finding]:
    return [each for each in findings if each.check.partition("/")[0] == check]


@pytest.mark.parametrize("account", ["kueueweb-push", "kueueweb-web"])
def test_an_account_with_our_manifests_has_every_right(plane: ControlPlane, system: System, account: str) -> None:
    findings = as_account(plane, system, account)
    assert [each for each in findings if each.status != "ok"] == []
    [rights] = of_check(findings, "rights")
    assert rights.message.startswith(f"system:serviceaccount:kueueweb:{account}: ")
    [version] = of_check(findings, "cluster")
    assert version.message == "Kubernetes v1.36.3"
    assert of_check(findings, "cluster-clock")


def failures(plane: ControlPlane, system: System, *parts: str) -> dict[str, Finding]:
    """Failures of the push account by the text before their colon, once they are those of these parts: changed bindings
    count after a moment."""
    found: dict[str, Finding] = {}

    def as_expected() -> bool:
        nonlocal found
        failed = [each for each in as_account(plane, system, "kueueweb-push") if each.status == "fail"]
        found = {each.message.partition(": ")[0]: each for each in failed}
        return set(found) == set(parts)

    wait_for(f"failures of {parts}", as_expected, 20)
    return found


def test_a_binding_that_is_missing_is_named_with_its_file(plane: ControlPlane, system: System) -> None:
    plane.admin.delete(BINDINGS, "", "kueueweb-locks")
    plane.kubectl("delete", "rolebinding", "kueueweb-tenant", "--namespace", "team")
    try:
        found = failures(plane, system, "kueueweb-locks", "kueueweb-tenant in team")
    finally:
        for file in ("rbac.yaml", "tenant.yaml"):
            for item in documents(file):
                metadata = item["metadata"] if file == "rbac.yaml" else {**item["metadata"], "namespace": "team"}
                plane.admin.apply(kind_of(item), {**item, "metadata": metadata})
    assert "patch nodes" in found["kueueweb-locks"].message
    assert "--namespace team apply -f deploy/kubernetes/tenant.yaml" in found["kueueweb-tenant in team"].remedy
    failures(plane, system)


def test_one_verb_that_is_taken_out_is_named(plane: ControlPlane, system: System) -> None:
    [role] = [each for each in documents("rbac.yaml") if (each["kind"], each["metadata"]["name"]) == READ]
    rules = [{**rule, "verbs": ["get", "list"]} if "nodes" in rule["resources"] else rule for rule in role["rules"]]
    plane.admin.apply(ROLES, {**role, "rules": rules})
    try:
        found = failures(plane, system, "kueueweb-read")
    finally:
        plane.admin.apply(ROLES, role)
    assert "missing permissions (5): watch nodes, watch namespaces, watch pods" in found["kueueweb-read"].message
    failures(plane, system)


def test_definitions_that_mirroring_needs_are_missing(plane: ControlPlane, system: System) -> None:
    system.cluster.mode = "observe"
    failed = [each for each in as_account(plane, system, "kueueweb-push") if each.status == "fail"]
    assert [each.message for each in failed] == ["kueue.x-k8s.io/v1beta2 is not served: versions are none"]


def test_other_schedulers_are_named_with_their_releases(plane: ControlPlane, system: System) -> None:
    pod: JsonObject = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "kueue", "namespace": "team", "labels": {"app.kubernetes.io/name": "kueue"}},
        "spec": {"containers": [{"name": "manager", "image": "registry.k8s.io/kueue/kueue:v0.14.1"}]},
    }
    plane.kubectl("apply", "-f", "-", manifests=[pod])
    [kueue] = of_check(as_account(plane, system, "kueueweb-push"), "kueue")
    assert (kueue.status, kueue.message) == ("warn", "kueue:v0.14.1 runs, and kueueweb decides, too")


def webhook_findings(plane: ControlPlane, system: System, account: str) -> dict[str, Finding]:
    client = plane.client(plane.token_of("kueueweb", account))
    return {each.check.partition("/")[0]: each for each in webhook_checks(system.cluster, client, "kueueweb")}


def test_the_api_server_asks_a_webhook_that_answers_and_says_so_when_it_does_not(
    plane: ControlPlane, system: System, webhook: ServedWebhook
) -> None:
    found = webhook_findings(plane, system, "kueueweb-push")
    assert set(found) == {"webhook"}, "the certificate is the webhook's own to read"
    assert found["webhook"].status == "ok"
    assert found["webhook"].message == "the API server accepted a Job of team as a dry run"
    assert not Workload.objects.exists()

    for kind, configuration in webhook_configurations(Target(url="https://127.0.0.1:1")):
        plane.admin.apply(kind, configuration)
    found = webhook_findings(plane, system, "kueueweb-push")
    assert found["webhook"].status == "fail"
    assert "failed calling webhook" in found["webhook"].message


def test_a_certificate_that_is_missing_foreign_or_good_is_told_apart(
    plane: ControlPlane, system: System, webhook: ServedWebhook
) -> None:
    def judged() -> Finding:
        return webhook_findings(plane, system, "kueueweb-webhook")["webhook-certificate"]

    def store(certificate: bytes) -> None:
        data = {"data": {"tls.crt": base64.b64encode(certificate).decode()}}
        plane.admin.patch(SECRETS, "kueueweb", "webhook-certificates", data)

    assert judged().message == "no certificate is registered"
    store(renewed(None, ["127.0.0.1"], START).certificate)
    assert "do not match" in judged().message
    store(webhook.certificates.certificate)
    assert judged().status == "ok"
