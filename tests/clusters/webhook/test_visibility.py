"""Kueue's visibility API: who waits, in which place, as kueuectl reads it; only the API server may ask."""

from __future__ import annotations

import ssl
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
import urllib3
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from accounts.models import Cluster
from clusters.served.pending_workloads import GROUP
from clusters.webhook.certificates import renewed
from clusters.webhook.server import Served, WebhookServer
from clusters.webhook.visibility import VisibilityApplication
from queues.models import LocalQueue, Workload
from simulation.server import listen
from tests.clusters.webhook.served import HOST
from tests.factories import START, make_cluster, make_cluster_queue, make_workload

ROOT = f"/apis/{GROUP}/v1beta2"


def waiting(cluster: Cluster) -> None:
    """Five who wait in `main`: two LocalQueues of `team`, and one that holds quota, one that is held."""
    make_cluster_queue(cluster)
    LocalQueue.objects.create(
        cluster=cluster, namespace="team", name="other", cluster_queue_name="main", created_at=START
    )
    for name, queue, priority in (("a", "queue", 0), ("b", "other", 0), ("c", "queue", 5), ("d", "queue", 0)):
        make_workload(cluster, name, queue_name=queue, priority=priority, cluster_queue_name="main")
    make_workload(cluster, "held", active=False, cluster_queue_name="main")
    make_workload(cluster, "runs", status="Admitted", quota_reserved_at=START, cluster_queue_name="main")


def ask(cluster: Cluster, path: str, **query: str) -> tuple[int, dict[str, Any]]:
    code, body = VisibilityApplication(cluster).answer(path, query)
    found: dict[str, Any] = orjson.loads(orjson.dumps(body))
    return int(code), found


def positions(body: dict[str, Any]) -> list[tuple[str, int, int]]:
    return [
        (item["metadata"]["name"], item["positionInClusterQueue"], item["positionInLocalQueue"])
        for item in body["items"]
    ]


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_those_who_wait_in_a_cluster_queue(db: None, version: str) -> None:
    cluster = make_cluster()
    waiting(cluster)
    code, body = ask(cluster, f"/apis/{GROUP}/{version}/clusterqueues/main/pendingworkloads")
    assert (code, body["kind"], body["apiVersion"]) == (200, "PendingWorkloadsSummary", f"{GROUP}/{version}")
    assert positions(body) == [("c", 0, 0), ("a", 1, 1), ("b", 2, 0), ("d", 3, 2)]
    first = body["items"][0]
    assert (first["priority"], first["localQueueName"], first["metadata"]["namespace"]) == (5, "queue", "team")
    assert first["metadata"]["creationTimestamp"].endswith("Z")


def test_those_who_wait_in_a_local_queue_and_parts_of_a_list(db: None) -> None:
    cluster = make_cluster()
    waiting(cluster)
    queue = f"{ROOT}/namespaces/team/localqueues/queue/pendingworkloads"
    assert positions(ask(cluster, queue)[1]) == [("c", 0, 0), ("a", 1, 1), ("d", 3, 2)]
    assert positions(ask(cluster, queue, limit="1", offset="1")[1]) == [("a", 1, 1)]
    main = f"{ROOT}/clusterqueues/main/pendingworkloads"
    assert positions(ask(cluster, main, limit="2", offset="2")[1]) == [("b", 2, 0), ("d", 3, 2)]
    assert len(positions(ask(cluster, main, limit="0")[1])) == 4
    assert positions(ask(cluster, main, offset="9" * 25)[1]) == []
    for limit in ("many", "٣", "1_0", " 2 ", ""):
        assert ask(cluster, main, limit=limit)[0] == 400
    Workload.objects.all().delete()
    assert ask(cluster, main)[1]["items"] == []


def test_a_queue_that_is_not_there_and_one_of_another_cluster(db: None) -> None:
    cluster, other = make_cluster(), make_cluster("other")
    waiting(other)
    for path, kind in (("clusterqueues/main", "clusterqueue"), ("namespaces/team/localqueues/queue", "localqueue")):
        code, body = ask(cluster, f"{ROOT}/{path}/pendingworkloads")
        assert (code, body["kind"], body["reason"], body["details"]["kind"]) == (404, "Status", "NotFound", kind)


def test_discovery(db: None) -> None:
    cluster = make_cluster()
    assert ask(cluster, "/apis")[1]["groups"][0]["preferredVersion"]["version"] == "v1beta2"
    resources = {each["name"]: each["verbs"] for each in ask(cluster, ROOT)[1]["resources"]}
    assert resources["clusterqueues/pendingworkloads"] == ["get"]
    assert ask(cluster, f"{ROOT}/nonsense")[0] == 404


def signed(name: str, signer: tuple[x509.Certificate, ec.EllipticCurvePrivateKey] | None = None) -> Any:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(subject).public_key(key.public_key())
    builder = builder.issuer_name(signer[0].subject if signer else subject).serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(days=1))
    builder = builder.add_extension(x509.BasicConstraints(ca=signer is None, path_length=None), critical=True)
    return builder.sign(signer[1] if signer else key, hashes.SHA256()), key


def write_pair(folder: Path, name: str, pair: Any) -> tuple[str, str]:
    certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
    certificate.write_bytes(pair[0].public_bytes(serialization.Encoding.PEM))
    key.write_bytes(
        pair[1].private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return str(certificate), str(key)


def test_only_the_api_server_gets_a_connection(tmp_path: Path) -> None:
    """Its certificate is signed by the front proxy's authority; a pod that connects by itself has none, or another."""
    authority = signed("front-proxy-ca")
    front_proxy = write_pair(tmp_path, "front-proxy", signed("front-proxy-client", authority))
    stranger = write_pair(tmp_path, "stranger", signed("front-proxy-client", signed("front-proxy-ca")))
    trusted = authority[0].public_bytes(serialization.Encoding.PEM)
    ours = renewed(None, [HOST], datetime.now(UTC))
    listening = listen(HOST, 0)
    url = f"https://{HOST}:{listening.getsockname()[1]}/apis"
    served = Served(ours.certificate, ours.key, ours.authorities)
    application = VisibilityApplication(Cluster(name="default"))
    server = WebhookServer(application, listening, lambda: served, None, 1, callers=lambda: trusted)
    thread = threading.Thread(target=server.run, name="visibility")
    thread.start()
    try:
        for pair, allowed in ((front_proxy, True), (stranger, False), (None, False)):
            context = ssl.create_default_context(cadata=ours.authorities.decode())
            if pair is not None:
                context.load_cert_chain(*pair)
            with urllib3.PoolManager(ssl_context=context, retries=False) as pool:
                if allowed:
                    assert pool.request("GET", url).status == 200
                else:
                    with pytest.raises(urllib3.exceptions.HTTPError):
                        pool.request("GET", url)
    finally:
        server.stop()
        thread.join()
        listening.close()
