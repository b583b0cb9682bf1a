"""Remedies of the kind Less: the largest count or request with which a waiting workload starts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from scheduling.model.pod import PodTemplate
from scheduling.model.quantity import to_amount
from scheduling.model.workload import PodSet, Workload
from scheduling.studio.halving import largest
from scheduling.studio.remedy import Remedy, RemedyKind, tried
from scheduling.studio.trials import Trials
from scheduling.studio.world_changes import SetObject

_CPU = "cpu"


def smaller_requests(trials: Trials, workload: Workload) -> Iterator[Remedy]:
    """Find, for each pod set, the largest count, and per resource the largest request of one pod, that starts the
    workload. One value is changed at a time. A resource that several containers of a pod request is left out, because
    it is unknown which container needs less."""
    for index, pod_set in enumerate(workload.pod_sets):
        if pod_set.count > 1:
            yield from _found(trials, workload, index, "count", "", pod_set.count, partial(_of_count, pod_set))
        for resource, amount in _single_requests(pod_set.template).items():
            asking = partial(_asking, pod_set, resource)
            yield from _found(trials, workload, index, "requests", resource, amount, asking)


def _found(
    trials: Trials,
    workload: Workload,
    index: int,
    field: str,
    resource: str,
    amount: int,
    with_amount: Callable[[int], PodSet],
) -> Iterator[Remedy]:
    def changes(value: int) -> tuple[SetObject, ...]:
        pod_sets = [*workload.pod_sets]
        pod_sets[index] = with_amount(value)
        return (SetObject(replace(workload, pod_sets=tuple(pod_sets))),)

    found = largest(lambda value: trials.has_time() and trials.starts(changes(value)), 1, amount)
    if found is None:
        return
    remedy = tried(
        trials,
        RemedyKind.LESS,
        field,
        workload.pod_sets[index].name,
        changes(found.amount),
        before={resource: amount},
        after={resource: found.amount},
        monotone=found.monotone,
    )
    if remedy is not None:
        yield remedy


def _of_count(pod_set: PodSet, count: int) -> PodSet:
    least = pod_set.min_count
    return replace(pod_set, count=count, min_count=None if least is None or least >= count else least)


def _asking(pod_set: PodSet, resource: str, amount: int) -> PodSet:
    manifest = pod_set.template.manifest
    spec = manifest["spec"]
    containers = [_container(each, resource, amount) for each in spec["containers"]]
    template = PodTemplate.from_manifest({**manifest, "spec": {**spec, "containers": containers}})
    return replace(pod_set, template=template)


def _container(container: Mapping[str, Any], resource: str, amount: int) -> dict[str, Any]:
    """Return the container with another amount, if it requests the resource. A limit of cpu or memory is kept."""
    resources = {kind: dict(found) for kind, found in (container.get("resources") or {}).items() if found}
    named = [kind for kind in ("limits", "requests") if resource in resources.get(kind, {})]
    if not named:
        return dict(container)
    text = f"{amount}m" if resource == _CPU else str(amount)
    for kind in named if "/" in resource else ["requests"]:
        resources.setdefault(kind, {})[resource] = text
    return {**container, "resources": {**(container.get("resources") or {}), **resources}}


def _single_requests(template: PodTemplate) -> dict[str, int]:
    """Return the requests that exactly one container of a pod, and no init container, makes, in base units."""
    asked: dict[str, list[int]] = {}
    for container in template.containers if template.manifest else ():
        for resource, nanos in container.requests.items():
            asked.setdefault(resource, []).append(to_amount(resource, nanos))
    elsewhere = {resource for container in template.init_containers for resource in container.requests}
    elsewhere |= {*template.requests}  # of the pod as a whole
    return {
        resource: amounts[0]
        for resource, amounts in sorted(asked.items())
        if len(amounts) == 1 and amounts[0] > 1 and resource not in elsewhere
    }
