"""The users of pods that a real ReplicaSet controller creates, and of Jobs of a real CronJob controller."""

from __future__ import annotations

from clusters.client import REPLICA_SETS, JsonObject
from clusters.jobs.registry import JOB_KINDS
from queues.models import Workload
from tests.cluster_kinds import DEPLOYMENTS, JOBS
from tests.clusters.every_kind import jobs_of
from tests.clusters.system import gpu_job
from tests.clusters.webhook.served import ServedWebhook
from tests.kubernetes.system import System

_CRON_JOBS = JOB_KINDS["CronJob"].resource
_TWO_MINUTES = 130.0


def _users() -> set[str]:
    return set(Workload.objects.values_list("submitted_by", flat=True))


def _serving() -> JsonObject:
    [manifest] = jobs_of("Deployment", "serving", run_seconds=3600, cpu="1")
    manifest["metadata"]["namespace"] = "team"
    return manifest


def test_pods_of_a_deployment_are_of_the_user_who_made_it(system: System, webhook: ServedWebhook) -> None:
    system.admin.create(DEPLOYMENTS, _serving())
    system.until("its pods have workloads", lambda: Workload.objects.exists())
    [user] = _users()
    assert user
    assert not user.startswith("system:serviceaccount:")
    [replicas] = system.admin.list(REPLICA_SETS, "team").items
    assert replicas["metadata"]["annotations"]["kueueweb.io/replicas-submitted-by"] == user
    system.admin.patch(DEPLOYMENTS, "team", "serving", {"spec": {"replicas": 3}})
    system.until("more pods", lambda: Workload.objects.count() >= 3)
    assert _users() == {user}
    after = system.admin.get(REPLICA_SETS, "team", replicas["metadata"]["name"])
    assert after is not None
    kept = {key: value for key, value in replicas["metadata"]["annotations"].items() if "submitted-by" in key}
    assert {**after["metadata"]["annotations"], **kept} == after["metadata"]["annotations"]


def test_jobs_of_a_cron_job_are_of_the_user_who_made_it(system: System, webhook: ServedWebhook) -> None:
    template = gpu_job("made")
    system.admin.create(
        _CRON_JOBS,
        {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "metadata": {"name": "minutely", "namespace": "team"},
            "spec": {
                "schedule": "* * * * *",
                "jobTemplate": {"metadata": {"labels": template["metadata"]["labels"]}, "spec": template["spec"]},
            },
        },
    )
    system.until("its first Job", lambda: Workload.objects.exists(), _TWO_MINUTES)
    system.admin.delete(_CRON_JOBS, "team", "minutely")
    [user] = _users()
    assert user
    assert not user.startswith("system:")
    system.until("its Jobs are deleted with it", lambda: not system.admin.list(JOBS, "team").items)
