"""Stores workloads, one or thousands per call, all or none."""

import json
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from django.db import IntegrityError, connection, transaction
from django.utils import timezone
from psycopg import Error as DatabaseError

from accounts.kinds.feature_gates import CONCURRENT_ADMISSION, is_on
from accounts.kinds.metrics_settings import copied_keys
from accounts.models import Cluster
from foundation.exceptions import AlreadyExists, ManifestErrors
from foundation.postgresql.instances import fetched_rows
from foundation.tracing import current_traceparent
from foundation.wake_ups import wake_scheduler
from queues.manifests.bounds import check_totals
from queues.manifests.kueue_keys import PARENT
from queues.manifests.workload import JobSpec, PodSetSpec, WorkloadSpec
from queues.models import (
    ClusterQueue,
    Job,
    LocalQueue,
    PodSet,
    PriorityClass,
    Workload,
    WorkloadEvent,
    WorkloadPriorityClass,
)
from queues.services.bulk import copy_rows, json_text, next_ids
from queues.services.flows.start_waits import first_waits
from queues.services.generated_names import draw_names
from queues.services.limits import check_limits
from queues.services.prebuilt_workloads import find_prebuilt, take_over
from queues.services.withdrawn_jobs import JobKey, free_names
from scheduling.lifecycle.conditions import VARIANT_GATE
from scheduling.lifecycle.inadmissible import PENDING_EVALUATION
from scheduling.manifest import LocatedError

_PRIORITY_GROUPS: Final = {"WorkloadPriorityClass": "kueue.x-k8s.io", "PriorityClass": "scheduling.k8s.io"}

_WORKLOAD_COLUMNS: Final = (
    "id", "uid", "cluster_id", "namespace", "name", "labels", "annotations", "api_version", "applied_set", "created_at",
    "job_id", "queue_name", "priority", "priority_class_group", "priority_class_kind", "priority_class_name", "active",
    "never_preempt", "maximum_execution_seconds", "preemption_gates", "submitted_by", "cluster_queue_name",
    "reason", "message", "traceparent", "waits_for",
    "user_groups",
)  # fmt: skip
_JOB_COLUMNS: Final = (
    "id", "cluster_id", "uid", "namespace", "name", "kind", "manifest", "labels", "annotations", "api_version",
    "applied_set", "managed", "suspended", "found_in_cluster", "created_at",
)  # fmt: skip
_WAITS: Final = (PENDING_EVALUATION[0].value, PENDING_EVALUATION[1])
_POD_SET_COLUMNS: Final = (
    "workload_id", "position", "name", "count", "min_count", "template", "requests", "topology_request",
)  # fmt: skip
_TAKEN_NAMES: Final = """
    SELECT namespace, name FROM queues_workload JOIN unnest(%s::text[], %s::text[]) AS wanted (namespace, name)
    USING (namespace, name) WHERE cluster_id = %s"""
_TAKEN_JOBS: Final = """
    SELECT FROM queues_job JOIN unnest(%s::text[], %s::text[], %s::text[]) AS wanted (kind, namespace, name)
    USING (kind, namespace, name) WHERE cluster_id = %s LIMIT 1"""
_NAMESPACES: Final = "SELECT name FROM accounts_namespace WHERE cluster_id = %s AND name = ANY(%s)"
_DEFAULT_PRIORITY: Final = """
    SELECT value, name FROM queues_priorityclass WHERE cluster_id = %s AND global_default ORDER BY value LIMIT 1"""
_SURROUNDINGS: Final = """
    SELECT namespace, name, cluster_queue_name FROM queues_localqueue
    WHERE cluster_id = %s AND namespace = ANY(%s) AND name = ANY(%s)
    UNION ALL SELECT NULL, auth_group.name, NULL FROM auth_group
    JOIN auth_user_groups ON auth_user_groups.group_id = auth_group.id
    JOIN auth_user ON auth_user.id = auth_user_groups.user_id WHERE auth_user.username = %s"""
"""LocalQueues with their ClusterQueues, and, without a namespace, the groups of a user: two answers of one statement,
because each statement delays the submission."""
_EVENT_COLUMNS: Final = ("cluster_id", "workload_uid", "namespace", "workload_name", "at", "reason", "message", "actor")


@dataclass(frozen=True, slots=True)
class CreatedWorkload:
    """A stored workload, in the order of the call."""

    id: int
    uid: uuid.UUID
    namespace: str
    name: str
    spec: WorkloadSpec

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class _Priority:
    value: int
    kind: str
    name: str


def missing_queues(cluster: Cluster, named: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Return a warning for each LocalQueue (namespace, name) that does not exist. As in Kueue, workloads that name it
    are accepted and wait for it. An empty name counts as missing."""
    wanted = {key for key in named if key[1]}
    rows = LocalQueue.objects.filter(
        cluster=cluster, namespace__in={key[0] for key in wanted}, name__in={key[1] for key in wanted}
    )
    known = set(rows.values_list("namespace", "name")) if wanted else set()
    return {
        (namespace, name): f"LocalQueue {name} doesn't exist in namespace {namespace}: no workload starts until it does"
        for namespace, name in sorted(wanted - known)
    }


def create_workloads(
    cluster: Cluster,
    specs: Sequence[WorkloadSpec],
    *,
    actor: str,
    submitted_by: str = "",
    now: datetime | None = None,
    rate_is_checked: bool = False,
    limited: bool = True,
) -> list[CreatedWorkload]:
    """Store the workloads, their pod sets, jobs and first events, and wake the scheduler on commit.

    Specs that share one `JobSpec` instance share one job. A missing LocalQueue is no error (as in Kueue, the
    workload waits as Misconfigured). Raises `ManifestErrors` for a missing namespace or priority class, a name used
    twice in the call, or more than 64 bits of a resource; `AlreadyExists` if the only mistakes are existing names;
    `LimitReached` if a user's limit would be exceeded; jobs that are in the cluster already have no limit (`limited`
    False). Each error names the document. Nothing is stored then.
    """
    if not specs:
        return []
    now = now or timezone.now()
    specs = _with_family_label(cluster, _with_copied_keys(cluster, specs))
    check_totals(specs)
    try:
        with transaction.atomic():
            priorities = _checked_priorities(cluster, specs)
            if limited:
                check_limits(cluster, specs, submitted_by, rate_is_checked=rate_is_checked)
            prebuilt = find_prebuilt(cluster, specs, submitted_by)
            rest = [
                (spec, priority) for spec, priority in zip(specs, priorities, strict=True) if id(spec) not in prebuilt
            ]
            new_jobs = {id(spec.job): spec.job for spec in specs if spec.job is not None and spec.job.row_id is None}
            ids = next_ids({Workload: len(rest), Job: len(new_jobs)})
            created = _named(cluster, [spec for spec, _ in rest], ids[Workload])
            _refuse_taken_names(cluster, created)
            jobs = _store_jobs(cluster, specs, new_jobs, ids[Job], now)
            _store(cluster, created, [priority for _, priority in rest], jobs, actor, submitted_by, now)
            taken = [take_over(row, spec, jobs[id(spec.job)], actor, now) for spec, row in prebuilt.values()]
            wake_scheduler(cluster.name)
    except IntegrityError as error:
        raise AlreadyExists(_taken_meanwhile(error)) from error
    return created + [CreatedWorkload(row.pk, row.uid, row.namespace, row.name, spec) for row, spec in taken]


def _with_copied_keys(cluster: Cluster, specs: Sequence[WorkloadSpec]) -> list[WorkloadSpec]:
    """Return the specs, with the labels and annotations that their jobs hand over and the Configuration names."""
    copied = copied_keys(cluster.configuration)
    return [_with_keys(spec, *copied.of(*spec.job.handed_over)) if spec.job else spec for spec in specs]


def _with_keys(spec: WorkloadSpec, labels: Mapping[str, str], annotations: Mapping[str, str]) -> WorkloadSpec:
    if not (labels or annotations):
        return spec
    return replace(spec, labels={**labels, **spec.labels}, annotations={**annotations, **spec.annotations})


def _with_family_label(cluster: Cluster, specs: Sequence[WorkloadSpec]) -> list[WorkloadSpec]:
    """Return the specs, with Kueue's label on those whose queue leads to a ClusterQueue with a policy, so that their
    objects have it from the beginning. A variant has its gate instead."""
    if not is_on(cluster.configuration, CONCURRENT_ADMISSION):
        return list(specs)
    queues = ClusterQueue.objects.filter(cluster=cluster).exclude(concurrent_admission_policy={})
    local = LocalQueue.objects.filter(cluster=cluster, cluster_queue_name__in=queues.values("name"))
    marked = set(local.values_list("namespace", "name"))
    return [
        replace(spec, labels={**spec.labels, PARENT: "true"})
        if (spec.namespace, spec.queue_name) in marked and VARIANT_GATE not in spec.preemption_gates
        else spec
        for spec in specs
    ]


def _named(cluster: Cluster, specs: Sequence[WorkloadSpec], ids: Sequence[int]) -> list[CreatedWorkload]:
    prefixes = [(spec.namespace, spec.name) for spec in specs if spec.generate_name]
    given = ((spec.namespace, spec.name) for spec in specs if not spec.generate_name)
    drawn = iter(draw_names(Workload.objects.filter(cluster=cluster), prefixes, given))
    return [
        CreatedWorkload(id_, uuid.uuid4(), spec.namespace, next(drawn) if spec.generate_name else spec.name, spec)
        for id_, spec in zip(ids, specs, strict=True)
    ]


def _checked_priorities(cluster: Cluster, specs: Sequence[WorkloadSpec]) -> list[_Priority]:
    """Return each spec's priority in Kueue's order: its own value, the class it names, the cluster's default
    class, 0."""
    errors = _missing_namespaces(cluster, specs)
    named = {(spec.priority_class_kind, spec.priority_class_name) for spec in specs if spec.priority_class_name}
    values = _class_values(cluster, named)
    needs_default = any(spec.priority is None and not spec.priority_class_name for spec in specs)
    default = _default_priority(cluster) if needs_default else _Priority(0, "", "")
    priorities: list[_Priority] = []
    for spec in specs:
        kind, name = spec.priority_class_kind, spec.priority_class_name
        if name and (kind, name) not in values and spec.priority is None:
            errors.append(
                LocatedError(
                    spec.document,
                    "priority_class",
                    name,
                    f"not found: cluster {cluster.name} has no {kind} of this name.",
                    f"Create the {kind} first, or use an existing one.",
                )
            )
        elif spec.priority is None and not name:
            priorities.append(default)
        else:
            value = spec.priority if spec.priority is not None else values[kind, name]
            priorities.append(_Priority(value, kind if name else "", name))
    if errors:
        raise ManifestErrors(sorted(errors, key=lambda error: error.document))
    return priorities


def _missing_namespaces(cluster: Cluster, specs: Sequence[WorkloadSpec]) -> list[LocatedError]:
    wanted = {spec.namespace for spec in specs}
    there = {name for (name,) in fetched_rows(_NAMESPACES, [cluster.pk, list(wanted)])}
    return [
        LocatedError(
            spec.document,
            "namespace",
            spec.namespace,
            f"not found: cluster {cluster.name} has no such namespace.",
            "Create the namespace first.",
        )
        for spec in specs
        if spec.namespace not in there
    ]


def _class_values(cluster: Cluster, named: Iterable[tuple[str, str]]) -> dict[tuple[str, str], int]:
    values: dict[tuple[str, str], int] = {}
    for model in (WorkloadPriorityClass, PriorityClass):
        names = {name for kind, name in named if kind == model.__name__}
        if names:
            rows = model._default_manager.filter(cluster=cluster, name__in=names).values_list("name", "value")
            values |= {(model.__name__, name): value for name, value in rows}
    return values


def _default_priority(cluster: Cluster) -> _Priority:
    found = fetched_rows(_DEFAULT_PRIORITY, [cluster.pk])
    return _Priority(found[0][0], "PriorityClass", found[0][1]) if found else _Priority(0, "", "")


def _refuse_taken_names(cluster: Cluster, created: Sequence[CreatedWorkload]) -> None:
    uses = Counter((workload.namespace, workload.name) for workload in created)
    twice = [
        _name_error(workload, "two documents of this request have this namespace and name.", "Remove one of them.")
        for workload in (created if len(uses) < len(created) else ())
        if uses[workload.namespace, workload.name] > 1
    ]
    if twice:
        raise ManifestErrors(twice)
    taken = _taken_names(cluster, uses)
    there = [
        _name_error(workload, "a workload with this name already exists.", "Use another name, or generate_name.")
        for workload in (created if taken else ())
        if (workload.namespace, workload.name) in taken
    ]
    if there:
        raise AlreadyExists(f"{len(there)} of {len(created)} workloads already exist; nothing was stored.", there)


def _taken_names(cluster: Cluster, names: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return the names that workloads have already. Two arrays, not a parameter for each name: Django and psycopg read
    every parameter several times."""
    names = list(names)
    with connection.cursor() as cursor:
        cursor.execute(_TAKEN_NAMES, [[space for space, _ in names], [name for _, name in names], cluster.pk])
        return set(cursor.fetchall())


def _name_error(workload: CreatedWorkload, rule: str, remedy: str) -> LocatedError:
    return LocatedError(workload.spec.document, "name", workload.key, rule, remedy)


def _store_jobs(
    cluster: Cluster, specs: Sequence[WorkloadSpec], new: Mapping[int, JobSpec], keys: Sequence[int], now: datetime
) -> dict[int, int]:
    """Return the primary key of each JobSpec's row, by the instance's identity. The new ones get rows with
    these keys."""
    jobs = [spec.job for spec in specs if spec.job is not None]
    stored = {id(job): job.row_id for job in jobs if job.row_id is not None}
    if _are_taken(cluster, [(job.kind, job.namespace, job.name) for job in new.values()]):
        free_names(cluster, ((job.kind, job.namespace, job.name) for job in new.values()))
        _refuse_taken_jobs(cluster, [spec for spec in specs if id(spec.job) in new])
    ids = dict(zip(new, keys, strict=True))
    # The manifest is not written by orjson: fields that we do not read may hold integers beyond 64 bits.
    rows = (
        (
            ids[identity], cluster.pk, job.uid, job.namespace, job.name, job.kind, json.dumps(job.manifest),
            json_text(job.labels), json_text(job.annotations), job.api_version, job.applied_set, job.managed,
            job.suspended, job.found_in_cluster, now,
        )
        for identity, job in new.items()
    )  # fmt: skip
    if new:
        copy_rows(Job, _JOB_COLUMNS, rows, now)
    return stored | ids


def _are_taken(cluster: Cluster, jobs: Sequence[JobKey]) -> bool:
    """Return whether a job has one of these names, be it withdrawn."""
    columns = [[kind for kind, _, _ in jobs], [space for _, space, _ in jobs], [name for _, _, name in jobs]]
    return bool(jobs) and bool(fetched_rows(_TAKEN_JOBS, [*columns, cluster.pk]))


def _refuse_taken_jobs(cluster: Cluster, specs: Sequence[WorkloadSpec]) -> None:
    jobs = {(spec.job.kind, spec.job.namespace, spec.job.name): spec for spec in specs if spec.job is not None}
    similar = (
        Job.objects.filter(cluster=cluster, name__in=[name for _, _, name in jobs]) if jobs else Job.objects.none()
    )
    there = [
        LocatedError(
            jobs[key].document,
            "metadata.name",
            f"{key[1]}/{key[2]}",
            f"Duplicate value: a {key[0]} of this name exists.",
            "Delete it first, use another name, or generateName.",
        )
        for key in similar.values_list("kind", "namespace", "name")
        if key in jobs
    ]
    if there:
        there.sort(key=lambda error: error.document)
        raise AlreadyExists(f"{len(there)} of {len(jobs)} jobs already exist; nothing was stored.", there)


def _store(
    cluster: Cluster,
    created: Sequence[CreatedWorkload],
    priorities: Sequence[_Priority],
    jobs: dict[int, int],
    actor: str,
    submitted_by: str,
    now: datetime,
) -> None:
    cluster_queues, found_groups = _surroundings(cluster, (workload.spec for workload in created), submitted_by)
    groups = json_text(found_groups)
    traceparent = current_traceparent()
    waits = first_waits(cluster, [workload.spec for workload in created])

    def workload_row(workload: CreatedWorkload, priority: _Priority) -> tuple[Any, ...]:
        spec = workload.spec
        return (
            workload.id, workload.uid, cluster.pk, workload.namespace, workload.name, json_text(spec.labels),
            json_text(spec.annotations), spec.api_version, spec.applied_set, now, jobs.get(id(spec.job)),
            spec.queue_name, priority.value, _PRIORITY_GROUPS.get(priority.kind, ""), priority.kind, priority.name,
            spec.active, spec.never_preempt, spec.maximum_execution_seconds, json_text(spec.preemption_gates),
            submitted_by, cluster_queues.get((spec.namespace, spec.queue_name), ""),
            *(_WAITS if spec.active else ("", "")), traceparent, json_text(waits.get(id(spec), [])),
            groups,
        )  # fmt: skip

    pod_sets = {id(workload.spec.pod_sets): workload.spec.pod_sets for workload in created}
    tails = {identity: [*_pod_set_columns(found)] for identity, found in pod_sets.items()}
    pod_set_rows = ((workload.id, *tail) for workload in created for tail in tails[id(workload.spec.pod_sets)])
    event_rows = (
        (cluster.pk, workload.uid, workload.namespace, workload.name, now, "Created", "", actor) for workload in created
    )
    copy_rows(Workload, _WORKLOAD_COLUMNS, map(workload_row, created, priorities), now)
    copy_rows(PodSet, _POD_SET_COLUMNS, pod_set_rows, now)
    copy_rows(WorkloadEvent, _EVENT_COLUMNS, event_rows, now)


def _pod_set_columns(pod_sets: Iterable[PodSetSpec]) -> Iterator[tuple[Any, ...]]:
    """Yield the columns of each pod set but its workload."""
    for position, pod_set in enumerate(pod_sets):
        yield (
            position, pod_set.name, pod_set.count, pod_set.min_count, json_text(pod_set.template),
            json_text(pod_set.requests), json_text(pod_set.topology_request),
        )  # fmt: skip


def _surroundings(
    cluster: Cluster, specs: Iterable[WorkloadSpec], submitted_by: str
) -> tuple[dict[tuple[str, str], str], list[str]]:
    """Return the present ClusterQueue of each LocalQueue, by namespace and name; and the groups of the user, by
    name."""
    wanted = {(spec.namespace, spec.queue_name) for spec in specs if spec.queue_name}
    spaces, names = {namespace for namespace, _ in wanted}, {name for _, name in wanted}
    found = fetched_rows(_SURROUNDINGS, [cluster.pk, list(spaces), list(names), submitted_by])
    queues = {(namespace, name): cluster_queue for namespace, name, cluster_queue in found if namespace is not None}
    return queues, sorted(name for namespace, name, _ in found if namespace is None)


def _taken_meanwhile(error: IntegrityError) -> str:
    """Two requests used a name at the same time; the database's error has the name."""
    cause = error.__cause__
    detail = (cause.diag.message_detail or "") if isinstance(cause, DatabaseError) else ""
    return f"Another request stored an object with the same name; nothing of this request was stored. {detail}".strip()
