"""Kueue's published definitions on a real API server: mirrored where a Kueue decides, and served by us where none does.

The test is the Kueue that writes statuses, and the users with kubectl. We have the rights
of deploy/kubernetes and no others.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from functools import partial
from http import HTTPStatus
from typing import Any, Final

import pytest
import yaml

from accounts.models import ClusterMode
from clusters.api_errors import ClusterError
from clusters.api_objects import EVENTS, NAMESPACES, JsonObject, Kind
from clusters.push.kueue_objects import serving
from clusters.push.sweep import push_pending
from clusters.served.kueue_kinds import KUEUE_KINDS
from clusters.sync.watcher import Watcher
from queues.kinds import KINDS
from queues.models import ClusterQueue, FlavorQuota, LocalQueue, Workload
from queues.services.configuration import apply_json
from scheduler.leader.engine import Engine
from scheduler.leader.observer import Observer
from tests.cluster_kinds import JOBS
from tests.clusters.kueue_cluster import PENDING, V1BETA2, KueueCluster, admitted, configure, workload
from tests.clusters.served_cluster import queue_spec
from tests.conformance.test_live_jobs import REFUSED, recorded
from tests.factories import make_cluster
from tests.kubernetes.control_plane import JobServer
from tests.kubernetes.operators import install_kueue
from tests.kubernetes.system import documents, kind_of
from tests.simulated_cluster import job
from tests.users import client_of, make_user

pytestmark = pytest.mark.django_db(transaction=True)

PLAIN_KINDS: Final = {"Namespace": NAMESPACES, "Job": JOBS, "Event": EVENTS}
TEAM: Final = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
_PATIENCE_SECONDS: Final = 60.0


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JobServer]:
    """An API server of its own, because Kueue's definitions are in nobody else's way there."""
    with JobServer(tmp_path_factory.mktemp("kueue")) as running:
        install_kueue(running.admin)
        yield running


def give_rights(server: JobServer, *files: str) -> None:
    for file in ("namespace.yaml", "rbac.yaml", *files):
        for manifest in documents(file):
            server.admin.apply(kind_of(manifest), manifest)


def kind_named(name: str) -> Kind:
    return PLAIN_KINDS.get(name) or next(kind for kind in KUEUE_KINDS[name] if kind.api_version == V1BETA2)


class RealKueueCluster(KueueCluster):
    """A cluster with Kueue's own definitions, and us with the watcher's account."""

    def __init__(self, server: JobServer) -> None:
        self.api = server
        self.version = V1BETA2
        give_rights(server, "observer.yaml")
        self.cluster = make_cluster(server_url=server.url, mode=ClusterMode.OBSERVE)
        self.watcher = Watcher(self.cluster, server.client(server.token_of("kueueweb", "kueueweb-watcher")))
        self.observer = Observer(self.cluster, "test")

    def write(self, obj: JsonObject) -> JsonObject:
        """Makes the object, or replaces it, its status included; returns it as the server has it."""
        kind, metadata = kind_named(obj["kind"]), obj["metadata"]
        there = metadata.get("namespace", ""), metadata["name"]
        self.api.kubectl("apply", "-f", "-", manifests=[{key: obj[key] for key in obj if key != "status"}])
        if "status" in obj:
            self.api.admin.patch(kind, *there, {"status": obj["status"]}, subresource="status")
        found = self.api.admin.get(kind, *there)
        assert found is not None
        return found


def test_kueue_s_api_refuses_workloads_that_were_recorded_without_it(server: JobServer) -> None:
    """Our jobs have no workload in these scenarios, as in a cluster with Kueue."""

    def is_refused(workload: JsonObject) -> bool:
        metadata = {
            key: workload["metadata"][key] for key in ("name", "namespace", "labels") if key in workload["metadata"]
        }
        server.admin.apply(NAMESPACES, {**TEAM, "metadata": {"name": metadata["namespace"]}})
        made = {**workload, "apiVersion": V1BETA2, "kind": "Workload", "metadata": metadata}
        try:
            server.admin.create(kind_named("Workload"), made, dry_run=True)
        except ClusterError as refusal:
            if refusal.status == HTTPStatus.UNPROCESSABLE_ENTITY:
                return True
            raise
        return False

    kinds = {name.partition("-")[0] for name in REFUSED}
    results = {
        case["id"]: any(is_refused(made) for step in case["expected"]["steps"] for made in step["workloads"])
        for kind in kinds
        for case in recorded(kind)
    }
    assert {name for name, refused in results.items() if refused} == {*REFUSED}
    assert len(results) > len(REFUSED)


def test_what_a_kueue_writes_is_on_every_page(server: JobServer) -> None:
    kueue = RealKueueCluster(server)
    configure(kueue)
    kueue.look()
    runs = workload(kueue, "runs", admitted(kueue))
    workload(kueue, "waits", PENDING)
    kueue.look()
    client = client_of(make_user("alice"))

    def get(path: str) -> Any:
        answer = client.get(f"/api/v1/{path}")
        assert answer.status_code == 200, (path, answer.content)
        return answer.json()

    listed = {row["name"]: row["status"] for row in get("workloads/")["results"]}
    assert listed == {"runs": "Admitted", "waits": "Pending"}
    shown = get("workloads/team/runs/")
    assert (shown["uid"], shown["pod_sets"][0]["flavors"]) == (runs["metadata"]["uid"], {"cpu": "plain"})
    assert get("workloads/team/waits/explanation/")["cluster_queue"] == "main"
    assert get("cluster-queues/main/")["cohort"] == "company"
    assert get("local-queues/team/local/")["cluster_queue"] == "main"
    assert get("resource-flavors/plain/")["node_labels"] == {"gpu": "on"}
    assert get("topologies/racks/")["levels"] == ["example.com/rack", "kubernetes.io/hostname"]
    assert get("workload-priority-classes/high/")["value"] == 1000
    assert get("admission-checks/budget/")["active"] is False
    assert [row["action"] for row in get("decisions/")["results"]] == ["Admit"]
    for path in ("overview/", "cohorts/tree/", "nodes/", "devices/", "drift/", "fragmentation/", "workloads/counts/"):
        get(path)


class RealServedCluster:
    """Nobody decides there but us: the watcher, the engine and the push, each with its own account."""

    def __init__(self, server: JobServer) -> None:
        self.api = server
        give_rights(server, "observer.yaml", "served.yaml")
        server.admin.apply(NAMESPACES, TEAM)
        for binding in documents("tenant.yaml"):
            bound = {**binding, "metadata": {**binding["metadata"], "namespace": "team"}}
            server.admin.apply(kind_of(binding), bound)
        self.cluster = make_cluster(server_url=server.url, serves_kueue_objects=True)
        self.client = server.client(server.token_of("kueueweb", "kueueweb-push"))
        self.watcher = Watcher(self.cluster, server.client(server.token_of("kueueweb", "kueueweb-watcher")))
        self.engine = Engine(self.cluster, "test")
        serving.forget()

    def until(self, what: str, condition: Callable[[], object]) -> None:
        """Everybody does their part until it is so."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not condition():
            told = list(Workload.objects.values_list("name", "status", "reason", "message"))
            assert time.monotonic() < deadline, f"not so: {what}: {told}, {self.seen()}"
            self.watcher.resync()
            self.engine.run()
            push_pending(self.cluster, self.client, time.time)
            time.sleep(0.2)

    def seen(self) -> str:
        return self.api.kubectl("get", "clusterqueues,localqueues,workloads", "-A", "-o", "wide")

    def apply(self, kind: str, name: str, body: JsonObject, namespace: str = "", *options: str) -> None:
        """As a user with kubectl."""
        metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
        manifest = {"apiVersion": V1BETA2, "kind": kind, "metadata": metadata, **body}
        self.api.kubectl("apply", "--server-side", *options, "-f", "-", manifests=[manifest])

    def columns(self, *asked: str) -> list[dict[str, str]]:
        """The table that kubectl prints, by its heads."""
        head, *rows = self.api.kubectl("get", *asked).rstrip().splitlines()
        starts = [found.start() for found in re.finditer(r"\S+(?: \S+)*", head)]
        cells = [slice(start, end) for start, end in zip(starts, [*starts[1:], None], strict=True)]
        return [{head[cell].strip(): row[cell].strip() for cell in cells} for row in rows]

    def queue(self) -> dict[str, str]:
        (row,) = self.columns("clusterqueue", "main", "-o", "wide")
        return row


def test_kubectl_reads_and_writes_as_with_kueue(server: JobServer) -> None:
    served = RealServedCluster(server)
    served.apply("ResourceFlavor", "plain", {"spec": {}})
    served.apply("Cohort", "company", {"spec": {}})
    served.apply("ClusterQueue", "main", queue_spec(cohortName="company"))
    served.apply("LocalQueue", "local", {"spec": {"clusterQueue": "main"}}, "team")
    served.until("the queues are here", lambda: LocalQueue.objects.exists() and ClusterQueue.objects.exists())

    for name, cpu in (("runs", "3"), ("waits", "2")):
        manifest = job(name, suspend=True, requests={"cpu": cpu})
        labels = {"kueue.x-k8s.io/queue-name": "local"}
        manifest["metadata"] = {"name": name, "namespace": "team", "labels": labels}
        server.kubectl("apply", "-f", "-", manifests=[manifest])
        served.until(f"{name} is decided on", partial(_decided, name))
    served.until("the counts are there", lambda: served.queue()["ADMITTED WORKLOADS"] == "1")
    served.until("what waits is counted", lambda: served.queue()["PENDING WORKLOADS"] == "1")
    assert {key: served.queue()[key] for key in ("NAME", "COHORT", "STRATEGY")} == {
        "NAME": "main", "COHORT": "company", "STRATEGY": "BestEffortFIFO",
    }  # fmt: skip
    (local,) = served.columns("localqueue", "-n", "team")
    assert (local["CLUSTERQUEUE"], local["PENDING WORKLOADS"], local["ADMITTED WORKLOADS"]) == ("main", "1", "1")
    rows = {row["NAME"]: row for row in served.columns("workloads", "-n", "team")}
    of_job = {row.job.name: rows[row.name] for row in Workload.objects.select_related("job") if row.job}
    assert (of_job["runs"]["QUEUE"], of_job["runs"]["RESERVED IN"], of_job["runs"]["ADMITTED"]) == (
        "local", "main", "True",
    )  # fmt: skip
    assert of_job["waits"]["RESERVED IN"] == ""
    described = server.kubectl("describe", "workload", "-n", "team", of_job["waits"]["NAME"])
    assert "1 core more needed" in described
    assert server.kubectl("get", "job", "-n", "team", "runs", "-o", "jsonpath={.spec.suspend}") == "false"

    quota = {"name": "cpu", "nominal_quota": "6"}
    groups = {"resource_groups": [{"covered_resources": ["cpu"], "flavors": [{"name": "plain", "resources": [quota]}]}]}
    apply_json(served.cluster, KINDS["ClusterQueue"], groups, name="main", actor="alice", merge=True)
    served.until("an edit here is there, and what waited runs", lambda: _quota_there(served) == "6" and _runs("waits"))
    theirs = queue_spec("9", cohortName="company")
    with pytest.raises(AssertionError, match='conflict with "kueueweb"'):
        served.apply("ClusterQueue", "main", theirs)  # they are told that we have changed it since
    served.apply("ClusterQueue", "main", theirs, "", "--force-conflicts")
    served.until("an edit there is here", lambda: FlavorQuota.objects.get(flavor="plain").nominal_quota == 9_000)
    _turn(served, range(4))
    settled = _versions(served)
    _turn(served, range(4, 8))
    assert _versions(served) == settled, "nothing happens, and nothing is written"


def test_kubectl_selects_backfill_and_sees_which_workload_it_holds_back(server: JobServer) -> None:
    """Three of four cores are busy for an hour: a workload of four has a planned start then."""
    served = RealServedCluster(server)
    served.apply("ResourceFlavor", "plain", {"spec": {}})
    annotations = {"kueueweb.io/backfill": "easy"}
    served.apply("ClusterQueue", "main", {**queue_spec("4"), "metadata": {"name": "main", "annotations": annotations}})
    served.apply("LocalQueue", "local", {"spec": {"clusterQueue": "main"}}, "team")
    served.until("the queues are here", lambda: LocalQueue.objects.exists() and ClusterQueue.objects.exists())
    for name, cpu, seconds, decided in (
        ("busy", "3", 3600, "Admitted"),
        ("big", "4", 600, "WaitingForQuota"),
        ("long", "1", 7200, "WaitingForPlannedStart"),
        ("short", "1", 600, "Admitted"),
    ):
        manifest = job(name, suspend=True, requests={"cpu": cpu})
        labels = {"kueue.x-k8s.io/queue-name": "local", "kueue.x-k8s.io/max-exec-time-seconds": str(seconds)}
        manifest["metadata"] = {"name": name, "namespace": "team", "labels": labels}
        server.kubectl("apply", "-f", "-", manifests=[manifest])
        served.until(f"{name} is decided on: {decided}", partial(_is_decided, name, decided))
    held = Workload.objects.get(job__name="long").name
    served.until(
        "kubectl says why it waits",
        lambda: "would delay the planned start" in server.kubectl("describe", "workload", "-n", "team", held),
    )


def _is_decided(job_name: str, decided: str) -> bool:
    row = Workload.objects.filter(job__name=job_name).first()
    return row is not None and decided in (row.status, row.reason)


def _turn(served: RealServedCluster, turns: range) -> None:
    """Every turn is ten seconds after the one before, so that no write of a status has to wait for its second."""
    for number in turns:
        served.watcher.resync()
        served.engine.run()
        push_pending(served.cluster, served.client, _clock(10.0 * number))


def _clock(ahead_seconds: float) -> Callable[[], float]:
    return lambda: time.time() + ahead_seconds


def _decided(job_name: str) -> bool:
    """Admitted, or told why not."""
    row = Workload.objects.filter(job__name=job_name).first()
    return row is not None and (row.status == "Admitted" or row.reason == "WaitingForQuota")


def _runs(job_name: str) -> bool:
    return Workload.objects.get(job__name=job_name).status == "Admitted"


def _quota_there(served: RealServedCluster) -> str:
    queue: JsonObject = yaml.safe_load(served.api.kubectl("get", "clusterqueue", "main", "-o", "yaml"))
    return str(queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"])


def _versions(served: RealServedCluster) -> dict[str, str]:
    kinds = [kind_named(name) for name in ("ClusterQueue", "LocalQueue", "Workload", "ResourceFlavor", "Cohort")]
    items = [item["metadata"] for kind in kinds for item in served.api.admin.list(kind).items]
    return {item["uid"]: item["resourceVersion"] for item in items}
