"""Tenants who submit jobs of all kinds and change their minds, an admin who edits quotas, and what was promised."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

import orjson

from clusters.jobs.framework.job_kind import Stopping
from clusters.jobs.registry import JOB_KINDS
from kueueweb.demo.jobs import OpenbSizes, Tenant, job
from tests.acceptance.crash.rest import Account, Answer
from tests.clusters.every_kind import EVERY_KIND, jobs_of, with_values

_KUEUE: Final = "kueue.x-k8s.io"
_MAX_LIVE: Final = 60
"""Jobs that one tenant deals with at a time; older ones are left to end by themselves."""
_YAML: Final = "application/yaml"
_SMALL: Final = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "4096", "nvidia.com/gpucores": "10"}


CRON_JOB: Final = "CronJob"
"""Has no workload of its own: what it makes has, until it is deleted."""
ENDLESS: Final = frozenset(
    name for name, kind in JOB_KINDS.items() if kind.serves or kind.stopping is Stopping.DELETE_PODS
)
"""Kinds that run until somebody ends them."""


class Fate(StrEnum):
    """What a job was promised."""

    STORED = "it is there, or has ended for a reason"
    HELD = "it is on hold, or has ended"
    CANCELLED = "it has ended"
    DELETED = "it has ended, or is gone"
    UNKNOWN = "an answer never came"


@dataclass(slots=True)
class Promise:
    """A job that a tenant submitted and what the last answer to the tenant was."""

    namespace: str
    kind: str
    name: str
    fate: Fate = Fate.STORED
    endless: bool = False
    priority: int | None = None
    """What an answered request set it to; None where none did, or an answer is missing."""
    workloads: list[str] = field(default_factory=list)


class TenantAtWork:
    """Random requests as one tenant, one after the other; `promises` is what the answers amount to."""

    def __init__(
        self,
        account: Account,
        stranger: Callable[[dict[str, Any]], Answer],
        tenant: Tenant,
        seed: int,
        max_jobs: int | None = None,
    ):
        """With `max_jobs` jobs come of every kind, and the tenant stops after so many."""
        self.account = account
        self._max_jobs = max_jobs
        self._stranger = stranger
        self._tenant = tenant
        self._chance = random.Random(seed)
        self._sizes = OpenbSizes.shipped()
        self.promises: list[Promise] = []
        self.answers: Counter[str] = Counter()
        self.refusals: Counter[str] = Counter()
        self._operations: Sequence[tuple[Callable[[], None], int]] = (
            (self._submit_jobs, 6),
            (self._apply_deployment, 1),
            (self._apply_pod, 1),
            (self._apply_group, 1),
            (self._apply_elastic_job, 1),
            (self._create_in_cluster, 2),
            (lambda: self._change("hold", Fate.HELD), 2),
            (lambda: self._change("release", Fate.STORED), 3),
            (lambda: self._change("cancel", Fate.CANCELLED), 2),
            (self._delete, 1),
            (self._set_priority, 1),
            (self._apply_any_kind, 10 if max_jobs else 0),
            (self._submit_any_kind, 5 if max_jobs else 0),
            (self._create_any_kind, 5 if max_jobs else 0),
        )

    def work(self, stopped: threading.Event, mean_pause: float) -> None:
        """Requests with random pauses, until told to stop or all jobs are there."""
        operations, weights = zip(*self._operations, strict=True)
        while not self._is_done() and not stopped.wait(self._chance.expovariate(1 / mean_pause)):
            self._chance.choices(operations, weights)[0]()

    def _is_done(self) -> bool:
        return self._max_jobs is not None and len(self.promises) >= self._max_jobs

    # --- Submitting ---------------------------------------------------------------------------------------------------

    def _submit_jobs(self) -> None:
        jobs = [self._job() for _ in range(self._chance.choice((1, 1, 1, 3)))]
        self._promise(jobs, self.account.call("POST", "workloads/", jobs), "submit")

    def _job(self) -> dict[str, Any]:
        seconds = min(self._sizes.run_seconds(self._chance), 600.0)
        made = job(self._tenant, self._sizes.shape(self._chance), max(10.0, seconds), self._chance)
        del made["spec"]["ttlSecondsAfterFinished"]
        return made

    def _apply_deployment(self) -> None:
        name = self._name("serve")
        labels = {"app": name}
        template = {"metadata": {"labels": labels}, "spec": _pod_spec(restart="Always")}
        spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
        self._apply([self._queued("apps/v1", "Deployment", name, spec=spec)], endless=True)

    def _apply_pod(self) -> None:
        pod = self._queued("v1", "Pod", self._name("pod"), spec=_pod_spec())
        self._apply([self._running(pod, pod)])

    def _apply_group(self) -> None:
        group = self._name("group")
        pods = []
        for number in range(2):
            pod = self._queued("v1", "Pod", f"{group}-{number}", spec=_pod_spec())
            pod["metadata"]["labels"][f"{_KUEUE}/pod-group-name"] = group
            pod["metadata"]["annotations"] = {f"{_KUEUE}/pod-group-total-count": "2"}
            pods.append(self._running(pod, pod))
        answer = self.account.call("POST", "manifests/", b"\n---\n".join(map(orjson.dumps, pods)), _YAML)
        self._note("apply", answer)
        if answer.acknowledged:
            self.promises.append(Promise(self._tenant.namespace, "PodGroup", group))

    def _apply_elastic_job(self) -> None:
        elastic = self._job()
        elastic["metadata"]["annotations"] = {f"{_KUEUE}/elastic-job": "true"}
        elastic["spec"] |= {"parallelism": 2, "completions": 2}
        elastic["spec"]["template"]["spec"] = _pod_spec()
        self._apply([elastic])

    def _create_in_cluster(self) -> None:
        """kubectl create of a labelled Job, which the watcher finds."""
        found = self._job()
        found["metadata"]["name"] = self._name("kubectl")
        self._promise([found], self._stranger(found), "create in cluster")

    def _apply_any_kind(self) -> None:
        kind, manifests = self._any_kind(EVERY_KIND)
        text = b"\n---\n".join(map(orjson.dumps, manifests))
        self._promise_one(kind, manifests, self.account.call("POST", "manifests/", text, _YAML), "apply a")

    def _submit_any_kind(self) -> None:
        kind, manifests = self._any_kind([kind for kind in EVERY_KIND if kind != CRON_JOB])
        self._promise_one(kind, manifests, self.account.call("POST", "workloads/", manifests), "submit a")

    def _create_any_kind(self) -> None:
        """kubectl create, running: the webhook suspends it. (Of a Deployment made there each pod is a workload, by a
        name of its own.)"""
        kind, manifests = self._any_kind([kind for kind in JOB_KINDS if kind not in (CRON_JOB, "Deployment")])
        self._promise_one(kind, manifests, self._stranger(manifests[0]), "create in cluster a")

    def _any_kind(self, kinds: Iterable[str]) -> tuple[str, list[dict[str, Any]]]:
        kind = self._chance.choice([*kinds])
        seconds, mib = self._chance.randint(20, 400), self._chance.choice((0, 2048))
        made = jobs_of(kind, self._name(kind.lower()[:12]), run_seconds=seconds, mib=mib)
        told = {
            "namespace": self._tenant.namespace, f"{_KUEUE}/queue-name": self._tenant.queue,
            "schedule": "*/30 * * * *",
        }  # fmt: skip
        return kind, [with_values(manifest, told) for manifest in made]

    def _promise_one(self, kind: str, manifests: list[dict[str, Any]], answer: Answer, what: str) -> None:
        self._note(f"{what} {kind}", answer)
        if answer.acknowledged:
            metadata = manifests[0]["metadata"]
            name = metadata.get("labels", {}).get(f"{_KUEUE}/pod-group-name", metadata["name"])
            self.promises.append(Promise(self._tenant.namespace, kind, name, endless=kind in ENDLESS))

    def _apply(self, manifests: list[dict[str, Any]], *, endless: bool = False) -> None:
        text = b"\n---\n".join(map(orjson.dumps, manifests))
        self._promise(manifests, self.account.call("POST", "manifests/", text, _YAML), "apply", endless=endless)

    def _promise(self, manifests: list[dict[str, Any]], answer: Answer, what: str, *, endless: bool = False) -> None:
        self._note(what, answer)
        if not answer.acknowledged:
            return
        for manifest in manifests:
            name = manifest["metadata"]["name"]
            self.promises.append(Promise(self._tenant.namespace, manifest["kind"], name, endless=endless))

    # --- Changing one's mind ------------------------------------------------------------------------------------------

    def _change(self, action: str, fate: Fate) -> None:
        chosen = self._choose(Fate.HELD if action == "release" else Fate.STORED)
        if chosen is None:
            return
        keys = [{"namespace": chosen.namespace, "name": name} for name in chosen.workloads]
        if len(keys) == 1 and self._chance.random() < 0.5:
            answer = self.account.call("POST", f"workloads/{chosen.namespace}/{chosen.workloads[0]}/{action}/")
        else:
            answer = self.account.call("POST", f"workloads/{action}/", {"workloads": keys})
        self._note(action, answer)
        if answer.acknowledged:
            chosen.fate = fate
        elif answer.unknown:
            chosen.fate = Fate.UNKNOWN

    def _delete(self) -> None:
        chosen = self._choose(Fate.STORED)
        if chosen is None or len(chosen.workloads) != 1:
            return
        answer = self.account.call("DELETE", f"workloads/{chosen.namespace}/{chosen.workloads[0]}/")
        self._note("delete", answer)
        if answer.acknowledged:
            chosen.fate = Fate.DELETED
        elif answer.unknown:
            chosen.fate = Fate.UNKNOWN

    def _set_priority(self) -> None:
        chosen = self._choose(Fate.STORED)
        if chosen is None or len(chosen.workloads) != 1:
            return
        class_name, value = self._chance.choice((("high-priority", 1000), ("normal-priority", 100)))
        path = f"workloads/{chosen.namespace}/{chosen.workloads[0]}/priority/"
        answer = self.account.call("POST", path, {"priority_class": class_name})
        self._note("priority", answer)
        if answer.acknowledged or answer.unknown:
            chosen.priority = value if answer.acknowledged else None

    def _choose(self, fate: Fate) -> Promise | None:
        """One of the jobs that the tenant still deals with, and the names of its workloads."""
        live = [promise for promise in self.promises[-_MAX_LIVE:] if promise.fate == fate]
        if not live:
            return None
        chosen = self._chance.choice(live)
        answer = self.account.call("GET", f"workloads/?namespace={chosen.namespace}&search={chosen.name}&limit=50")
        if not answer.acknowledged:
            return None
        chosen.workloads = [row["name"] for row in answer.body["results"] if owner_of(row) == key_of(chosen)]
        return chosen if chosen.workloads else None

    def _note(self, what: str, answer: Answer) -> None:
        kind = "no answer" if answer.status == 0 else f"{answer.status // 100}xx"
        self.answers[f"{what}: {kind}"] += 1
        if 400 <= answer.status < 500:
            self.refusals[f"{what}: {answer.status} {str(answer.body)[:300]}"] += 1

    # --- Manifests ----------------------------------------------------------------------------------------------------

    def _name(self, word: str) -> str:
        return f"{word}-{self._chance.getrandbits(40):010x}"

    def _queued(self, version: str, kind: str, name: str, **more: Any) -> dict[str, Any]:
        labels = {f"{_KUEUE}/queue-name": self._tenant.queue, f"{_KUEUE}/priority-class": "normal-priority"}
        metadata = {"name": name, "namespace": self._tenant.namespace, "labels": labels}
        return {"apiVersion": version, "kind": kind, "metadata": metadata, **more}

    def _running(self, manifest: dict[str, Any], pod: dict[str, Any]) -> dict[str, Any]:
        """How long its pods run, in the cluster's seconds."""
        annotations = pod["metadata"].setdefault("annotations", {})
        annotations["kueueweb.io/run-seconds"] = str(self._chance.randint(20, 400))
        return manifest


def _pod_spec(restart: str = "Never") -> dict[str, Any]:
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": _SMALL}
    container = {"name": "main", "image": "example.org/crash:1", "resources": resources}
    return {"restartPolicy": restart, "containers": [container]}


def key_of(promise: Promise) -> tuple[str, str, str]:
    """By which its workloads are found."""
    return promise.namespace, promise.kind, promise.name


def owner_of(row: dict[str, Any]) -> tuple[str, str, str]:
    """The job that a workload of REST comes from."""
    owner = row["owner"] or {"kind": "", "name": ""}
    return row["namespace"], owner["kind"], owner["name"]


class AdminAtWork:
    """An admin who edits the CPU quota of a ClusterQueue, again and again."""

    def __init__(self, account: Account, queue: str, seed: int) -> None:
        self.account = account
        self.queue = queue
        self._chance = random.Random(seed)
        self.answers: Counter[str] = Counter()
        self.possible: set[str] = set()
        """What the quota may be: what was answered or read last, and what was asked for since without an answer."""
        self.lost: list[str] = []
        """Each time that the quota was something else."""

    def work(self, stopped: threading.Event, mean_pause: float) -> None:
        """Edits with random pauses, until told to stop."""
        while not stopped.wait(self._chance.expovariate(1 / mean_pause)):
            self.edit(str(self._chance.randint(100, 192)))

    def edit(self, amount: str) -> bool:
        """Give the queue another quota, as read and changed by one admin. Whether it was acknowledged."""
        path = f"cluster-queues/{self.queue}/"
        read = self.account.call("GET", path)
        if not read.acknowledged:
            return False
        groups = read.body["resource_groups"]
        quota = groups[0]["flavors"][0]["resources"][0]
        self._compare(str(quota["nominal_quota"]))
        quota["nominal_quota"] = amount
        answer = self.account.call("PATCH", path, {"resource_groups": groups}, if_match=read.etag)
        self.answers[f"quota: {'no answer' if answer.status == 0 else f'{answer.status // 100}xx'}"] += 1
        if answer.acknowledged:
            self.possible = {amount}
        elif answer.unknown:
            self.possible.add(amount)
        return answer.acknowledged

    def _compare(self, amount: str) -> None:
        """Note a quota that nobody can have written."""
        if self.possible and amount not in self.possible:
            self.lost.append(f"the quota of {self.queue} is {amount}, and should be one of {sorted(self.possible)}")
        self.possible.add(amount)

    def check(self) -> None:
        """Compare what the quota is now."""
        body = self.account.patiently("GET", f"cluster-queues/{self.queue}/").body
        self._compare(str(body["resource_groups"][0]["flavors"][0]["resources"][0]["nominal_quota"]))
