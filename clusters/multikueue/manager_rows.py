"""A manager's rows in the form of the decisions: checks, workers, and the dispatched workloads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from accounts.models import Cluster
from clusters.api_objects import JsonObject
from clusters.jobs.framework.job_kind import JobKind
from clusters.jobs.framework.manifest import dig
from clusters.jobs.registry import JOB_KINDS
from clusters.multikueue.decisions import Dispatch, Local
from clusters.multikueue.worker_copies import spec_digest
from queues.manifests import kueue_keys as keys
from queues.manifests.job import WorkloadsPer
from queues.manifests.pod_group import POD, POD_GROUP
from queues.models import AdmissionCheck, MultiKueueConfig, Workload
from queues.services.workload_objects import workload_manifest
from scheduling.model.times import rfc3339
from scheduling.model.vocabulary import AdmissionCheckStatus, WorkloadStatus
from scheduling.state.second_pass import MULTIKUEUE

CONFIG_KIND: Final = "MultiKueueConfig"


@dataclass(frozen=True, slots=True)
class Case:
    """A workload with a check of MultiKueue."""

    workload: Workload
    check: str
    state: AdmissionCheckStatus
    message: str
    others_ready: bool
    dispatch: Dispatch

    @property
    def key(self) -> str:
        return self.workload.key

    @property
    def kind(self) -> JobKind | None:
        """The kind of its job; Pod for a group of pods."""
        job = self.workload.job
        if job is None:
            return None
        return JOB_KINDS.get(POD if job.kind == POD_GROUP else job.kind)

    @property
    def wants(self) -> bool:
        """Return whether the workload should run in a worker."""
        row = self.workload
        holds = row.quota_reserved_at is not None and row.evicted_at is None and row.deletion_requested_at is None
        return holds and row.status != WorkloadStatus.FINISHED and row.ending is None

    def manifest(self) -> JsonObject:
        return workload_manifest(self.workload)

    def local(self, only: str | None) -> Local:
        return Local(
            wants=self.wants,
            state=self.state,
            digest=spec_digest(self.manifest()["spec"]),
            priority=self.workload.priority,
            others_ready=self.others_ready,
            only=only,
        )

    def refusal(self) -> str:
        """Return why no worker could ever run it, in Kueue's words; "" if one could."""
        job, kind = self.workload.job, self.kind
        if job is None or kind is None:
            return "No multikueue adapter found"
        if not kind.multikueue:
            return f'No multikueue adapter found for owner kind "{kind.full_name}"'
        if self.workload.annotations.get(keys.ELASTIC_JOB) == "true":
            return "No multikueue adapter found for elastic jobs: remove the annotation kueue.x-k8s.io/elastic-job"
        if not kind.managed_by_path or not job.found_in_cluster:
            return ""
        manager = dig(job.manifest, *kind.managed_by_path) or ""
        if manager == MULTIKUEUE:
            return ""
        path = ".".join(kind.managed_by_path)
        return f'The owner is not managed by Kueue: Expecting {path} to be "{MULTIKUEUE}" not "{manager}"'


def config_names(cluster: Cluster) -> dict[str, str]:
    """Return the name of the MultiKueueConfig of each check of MultiKueue; "" for a check without one."""
    checks = AdmissionCheck.objects.filter(cluster=cluster, controller_name=MULTIKUEUE, deletion_requested_at=None)
    named = {row.name: row.parameters for row in checks}
    return {
        name: parameters.get("name", "") if parameters.get("kind") == CONFIG_KIND else ""
        for name, parameters in named.items()
    }


def configs_of(cluster: Cluster) -> dict[str, list[str] | None]:
    """Return the workers of each check of MultiKueue; None for one whose MultiKueueConfig is missing."""
    names = config_names(cluster)
    configs = dict(MultiKueueConfig.objects.filter(cluster=cluster).values_list("name", "clusters")) if names else {}
    return {check: configs.get(name) for check, name in names.items()}


def cases_of(cluster: Cluster, checks: Iterable[str]) -> list[Case]:
    """Return the workloads that hold quota and have such a check, and the workloads that were dispatched."""
    rows = Workload.objects.filter(cluster=cluster, quota_reserved_at__isnull=False).exclude(admission_check_states=[])
    unfinished = rows.exclude(status=WorkloadStatus.FINISHED)
    sent = Workload.objects.filter(cluster=cluster).exclude(multikueue={})
    found: list[Case] = []
    names = set(checks)
    wanted = (unfinished | sent).distinct().select_related("job").prefetch_related("pod_sets").order_by("pk")
    for row in wanted:
        states = {each["name"]: each for each in row.admission_check_states}
        check = next((name for name in states if name in names), "")
        if check or row.multikueue:
            found.append(_case(row, check, states))
    return found


def _case(row: Workload, check: str, states: Mapping[str, Mapping[str, Any]]) -> Case:
    state = states.get(check) or {}
    ready = AdmissionCheckStatus.READY
    return Case(
        row,
        check,
        AdmissionCheckStatus(state.get("state", AdmissionCheckStatus.PENDING)),
        str(state.get("message") or ""),
        all(each["state"] == ready for name, each in states.items() if name != check),
        read_dispatch(row),
    )


def read_dispatch(row: Workload) -> Dispatch:
    """Read the workers to which the workload was sent since it holds quota."""
    stored, reserved_at = row.multikueue, _text(row.quota_reserved_at)
    if stored.get("reservedAt") != reserved_at and not stored.get("cluster"):
        return Dispatch(reserved_at)
    return Dispatch(
        reserved_at,
        tuple(stored.get("nominated") or ()),
        _moment(stored.get("roundAt")),
        str(stored.get("cluster") or ""),
        _moment(stored.get("lostSince")),
    )


def write_dispatch(dispatch: Dispatch) -> dict[str, Any]:
    """Write the form that `read_dispatch` reads; {} for a workload that was not dispatched."""
    stored = {
        "nominated": list(dispatch.nominated),
        "roundAt": _text(dispatch.round_at),
        "cluster": dispatch.cluster,
        "lostSince": _text(dispatch.lost_since),
    }
    found = {key: value for key, value in stored.items() if value}
    return {"reservedAt": dispatch.reserved_at, **found} if found else {}


def together(cases: Sequence[Case]) -> dict[str, str | None]:
    """Return, by workload of a job with several workloads, the worker that it must go to: the one that was chosen for
    another workload of the job. Before one is chosen, return None (any worker) for the first workload, and "" (no
    worker) for the others."""
    of_job: dict[int, list[Case]] = defaultdict(list)
    for case in cases:
        if case.kind is not None and case.kind.workloads_per is WorkloadsPer.GROUP and case.workload.job is not None:
            of_job[case.workload.job.pk].append(case)
    found: dict[str, str | None] = {}
    for members in of_job.values():
        chosen = next((case.dispatch.cluster for case in members if case.dispatch.cluster), None)
        for number, case in enumerate(members):
            found[case.key] = chosen if chosen is not None else None if number == 0 else ""
    return found


def _text(at: datetime | None) -> str:
    return rfc3339(at) if at is not None else ""


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
