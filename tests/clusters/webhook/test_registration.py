"""Where the API server is told to find the webhook: by a Service or by an address, whatever was applied before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
import urllib3
import yaml

from clusters.api_objects import CUSTOM_RESOURCES, MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, JsonObject
from clusters.client import ClusterClient
from clusters.client_credentials import connect
from clusters.webhook.configurations import NAME, Target, conversion, webhook_configurations
from clusters.webhook.server import Registration
from simulation.api.api_server import APPLY_PATCH
from tests.simulated_cluster import ServerThread, make_simulated

SERVICE = Target("kueueweb", "webhook")
ADDRESS = Target("kueueweb", url="https://hooks.example.org:9443")
DEFINITION = "clusterqueues.kueue.x-k8s.io"
FILE = Path(__file__).parents[3] / "deploy" / "kubernetes" / "webhook-configurations.yaml"


@pytest.fixture
def server() -> Iterator[ServerThread]:
    with ServerThread(make_simulated()) as found:
        yield found


@pytest.fixture
def client(server: ServerThread) -> ClusterClient:
    return connect(server.url)


def kubectl_applies(server: ServerThread, manifest: JsonObject) -> tuple[int, str]:
    """`kubectl apply --server-side` of a file: its code and what it says."""
    group = "admissionregistration.k8s.io/v1"
    plural = f"{manifest['kind'].lower()}s"
    url = f"{server.url}/apis/{group}/{plural}/{NAME}?fieldManager=kubectl&force=true"
    answer = urllib3.request("PATCH", url, body=orjson.dumps(manifest), headers={"Content-Type": APPLY_PATCH})
    return answer.status, str(orjson.loads(answer.data).get("message", ""))


def places(client: ClusterClient) -> list[JsonObject]:
    """The clientConfig of every webhook of both configurations."""
    kinds = (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)
    found = [client.get(kind, "", NAME) for kind in kinds]
    return [webhook["clientConfig"] for each in found if each is not None for webhook in each["webhooks"]]


def wanted(target: Target) -> list[JsonObject]:
    return [webhook["clientConfig"] for _, each in webhook_configurations(target) for webhook in each["webhooks"]]


def test_an_address_takes_the_place_of_the_service_of_the_file(server: ServerThread, client: ClusterClient) -> None:
    for manifest in yaml.safe_load_all(FILE.read_text()):
        assert kubectl_applies(server, manifest)[0] == 201
    assert places(client) == wanted(SERVICE)
    registration = Registration(client, ADDRESS, lambda: False)
    registration.write(b"ca")
    there = places(client)
    assert there == wanted(Target(url=ADDRESS.url, authorities=b"ca", namespace="kueueweb"))
    assert {config["url"].removeprefix(ADDRESS.url) for config in there} >= {"/mutate/jobs", "/validate/starts"}
    before = client.get(MUTATING_WEBHOOKS, "", NAME)
    registration.write(b"ca")
    assert client.get(MUTATING_WEBHOOKS, "", NAME) == before, "written once"


def test_a_service_takes_the_place_of_an_address(client: ClusterClient) -> None:
    Registration(client, ADDRESS, lambda: False).write(b"old")
    Registration(client, SERVICE, lambda: False).write(b"new")
    assert places(client) == wanted(Target("kueueweb", "webhook", authorities=b"new"))


def test_authorities_that_others_wrote_stay_where_none_are_given(server: ServerThread, client: ClusterClient) -> None:
    for _, manifest in webhook_configurations(Target("kueueweb", "webhook", authorities=b"theirs")):
        assert kubectl_applies(server, manifest)[0] == 201
    Registration(client, ADDRESS, lambda: False).write(None)
    assert places(client) == wanted(Target("kueueweb", url=ADDRESS.url, authorities=b"theirs"))


def test_the_file_beside_an_address_is_refused_by_the_api_server(server: ServerThread, client: ClusterClient) -> None:
    """The reason that our own apply has to take the Service away first."""
    Registration(client, ADDRESS, lambda: False).write(b"ca")
    [manifest, _] = yaml.safe_load_all(FILE.read_text())
    code, said = kubectl_applies(server, manifest)
    assert (code, "exactly one of url or service is required" in said) == (422, True)


@pytest.mark.parametrize(("first", "then"), [(SERVICE, ADDRESS), (ADDRESS, SERVICE)], ids=["service", "address"])
def test_the_conversion_of_kueues_objects_moves_too(client: ClusterClient, first: Target, then: Target) -> None:
    versions = [{"name": name, "served": True, "storage": name == "v1beta2"} for name in ("v1beta1", "v1beta2")]
    names = {"plural": "clusterqueues", "kind": "ClusterQueue"}
    spec = {"group": "kueue.x-k8s.io", "names": names, "scope": "Cluster", "versions": versions}
    head = {"apiVersion": CUSTOM_RESOURCES.api_version, "kind": CUSTOM_RESOURCES.kind}
    made = {**head, "metadata": {"name": DEFINITION}, "spec": {**spec, "conversion": conversion(first)}}
    client.create(CUSTOM_RESOURCES, made)
    Registration(client, then, lambda: False, lambda: True).write(b"ca")
    there = client.get(CUSTOM_RESOURCES, "", DEFINITION)
    assert there is not None
    found = there["spec"]["conversion"]["webhook"]["clientConfig"]
    expected = Target(then.namespace, then.service, url=then.url, authorities=b"ca").client_config("/convert")
    assert found == expected
