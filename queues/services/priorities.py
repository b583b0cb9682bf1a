"""Chooses the priority class of a job, in Kueue's order."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from accounts.kinds.feature_gates import DEFAULT_PRIORITY_CLASS, is_on
from accounts.models import Cluster
from accounts.services.apply_result import Submitted
from queues.manifests import kueue_keys as keys
from queues.manifests.job import JobManifest
from queues.manifests.job_workloads import PriorityChoice
from queues.models import PriorityClass, WorkloadPriorityClass

DEFAULT_CLASS: Final = "default"
"""A WorkloadPriorityClass with this name applies to jobs that name none."""

_KUEUE: Final = "WorkloadPriorityClass"
_KUBERNETES: Final = "PriorityClass"


def choose_priorities(cluster: Cluster, jobs: Sequence[Submitted[JobManifest]]) -> list[PriorityChoice]:
    """Return each job's priority: the label's WorkloadPriorityClass; else one that an annotation suggests, if it
    exists; else the WorkloadPriorityClass `default`, unless the gate WorkloadPriorityClassDefaulting is off; else the
    pods' PriorityClass; else the cluster's default one; else 0.

    A named class that is missing is a warning. The label's class stays named, so that its value applies once it is
    created.
    """
    kueue = _values(
        WorkloadPriorityClass,
        cluster,
        {DEFAULT_CLASS, *_named(jobs, "workload_priority_class"), *_named(jobs, "hinted_priority_class")},
    )
    kubernetes = _values(PriorityClass, cluster, _named(jobs, "pod_priority_class"))
    default = PriorityClass.objects.filter(cluster=cluster, global_default=True).order_by("value").first()
    last = PriorityChoice(default.value, _KUBERNETES, default.name) if default else PriorityChoice()
    default_class = DEFAULT_CLASS if is_on(cluster.configuration, DEFAULT_PRIORITY_CLASS) else ""
    return [_choose(job, kueue, kubernetes, default_class, last) for job in jobs]


def _choose(
    submitted: Submitted[JobManifest],
    kueue: Mapping[str, int],
    kubernetes: Mapping[str, int],
    default_class: str,
    last: PriorityChoice,
) -> PriorityChoice:
    job = submitted.spec
    if name := job.workload_priority_class:
        if name not in kueue:
            _warn(submitted, f"metadata.labels[{keys.PRIORITY_CLASS}]", f"there is no WorkloadPriorityClass {name} yet")
        return PriorityChoice(kueue.get(name, 0), _KUEUE, name)
    if name := job.hinted_priority_class:
        if name in kueue:
            return PriorityChoice(kueue[name], _KUEUE, name)
        place = f"metadata.annotations[{keys.PRIORITY_CLASS}]"
        _warn(submitted, place, f"there is no WorkloadPriorityClass {name}: the pods' own class is used")
    if default_class in kueue:
        return PriorityChoice(kueue[default_class], _KUEUE, default_class)
    if name := job.pod_priority_class:
        if name not in kubernetes:
            path = "spec" if job.template_path is None else job.path_of("", "spec.priorityClassName")
            _warn(submitted, path, f"there is no PriorityClass {name}: the priority is 0")
        return PriorityChoice(kubernetes.get(name, 0), _KUBERNETES, name)
    return last


def _warn(submitted: Submitted[JobManifest], path: str, text: str) -> None:
    submitted.report.warn(submitted.at(path), text)


def _named(jobs: Sequence[Submitted[JobManifest]], attribute: str) -> set[str]:
    return {name for job in jobs if (name := getattr(job.spec, attribute))}


def _values(
    model: type[WorkloadPriorityClass] | type[PriorityClass], cluster: Cluster, names: Iterable[str]
) -> dict[str, int]:
    rows = model._default_manager.filter(cluster=cluster, name__in=list(names))
    return dict(rows.values_list("name", "value"))
