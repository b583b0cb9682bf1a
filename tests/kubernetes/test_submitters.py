"""The submitter of a job of kubectl, by the users whom a real API server names to the webhook."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from clusters.api_objects import JsonObject, Kind
from queues.models import Workload
from tests.cluster_kinds import DEPLOYMENTS, JOBS
from tests.clusters.every_kind import jobs_of
from tests.clusters.system import gpu_job
from tests.clusters.webhook.served import ServedWebhook
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.system import System

pytestmark = pytest.mark.django_db(transaction=True)

_NOTE = "kueueweb.io/submitted-by"
_SIGNATURE = "kueueweb.io/submitted-by-signature"
_QUEUE = "kueue.x-k8s.io/queue-name"
_CRON_JOBS = Kind("batch/v1", "CronJob", "cronjobs")


@pytest.fixture
def asked(system: System, webhook: ServedWebhook) -> Iterator[System]:
    """The system whose webhook the API server asks; the objects that own jobs are gone after the test."""
    yield system
    for kind in (DEPLOYMENTS, _CRON_JOBS):
        for item in system.admin.list(kind, "team").items:
            system.admin.delete(kind, "team", item["metadata"]["name"])


def _as(user: str) -> tuple[str, ...]:
    return ("--as", user, "--as-group", "system:masters", "-n", "team")


def _submitters(system: System) -> dict[str, str]:
    return {row.job.name: row.submitted_by for row in Workload.objects.select_related("job") if row.job is not None}


def test_the_user_who_queues_a_job_is_its_submitter(asked: System, plane: ControlPlane) -> None:
    unqueued = gpu_job("later", suspend=True)
    queue = unqueued["metadata"]["labels"].pop(_QUEUE)
    plane.kubectl(*_as("alice"), "create", "-f", "-", manifests=[unqueued, gpu_job("at-once")])
    plane.kubectl(*_as("bob"), "label", "job", "later", f"{_QUEUE}={queue}")
    asked.until("both workloads", lambda: Workload.objects.count() == 2)
    assert _submitters(asked) == {"at-once": "alice", "later": "bob"}


def test_no_user_removes_the_submitter(asked: System, plane: ControlPlane) -> None:
    plane.kubectl(*_as("alice"), "create", "-f", "-", manifests=[gpu_job("annotated"), gpu_job("replaced")])
    plane.kubectl(*_as("alice"), "annotate", "job", "annotated", f"{_NOTE}-", f"{_SIGNATURE}-")
    replaced = asked.admin.get(JOBS, "team", "replaced")
    assert replaced is not None
    del replaced["metadata"]["annotations"], replaced["metadata"]["resourceVersion"]
    plane.kubectl(*_as("alice"), "replace", "-f", "-", manifests=[replaced])
    asked.until("both workloads", lambda: Workload.objects.count() == 2)
    assert _submitters(asked) == {"annotated": "alice", "replaced": "alice"}


def test_controllers_make_and_change_what_users_queue(asked: System, plane: ControlPlane) -> None:
    """Under the controllers' own accounts: a Deployment of before the webhook, edited and scaled; a CronJob's Job."""
    [deployment] = jobs_of("Deployment", "serves", run_seconds=3600)
    cron = _cron_job("nightly")
    plane.kubectl(*_as("alice"), "apply", "-f", "-", manifests=[deployment, cron])
    plane.kubectl(*_as("bob"), "annotate", "deployment", "serves", "example.com/note=edited")
    plane.kubectl(*_as("bob"), "scale", "deployment", "serves", "--replicas", "2")
    plane.kubectl(*_as("bob"), "create", "job", "by-hand", "--from", "cronjob/nightly")
    asked.until("the pods and the Job", lambda: {"by-hand"} <= {*_submitters(asked)} and len(_pods(asked)) == 2)
    assert _submitters(asked)["by-hand"] == "bob"


def _pods(system: System) -> list[JsonObject]:
    return [pod for pod in system.pods() if pod["metadata"]["name"].startswith("serves")]


def _cron_job(name: str) -> JsonObject:
    template = gpu_job(name)
    template["metadata"].pop("name")
    template["metadata"].pop("namespace", None)
    metadata = {"name": name, "namespace": "team"}
    spec = {"schedule": "0 0 1 1 *", "jobTemplate": {"metadata": template["metadata"], "spec": template["spec"]}}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata, "spec": spec}
