"""Manifests of jobs -> what is stored of them, for every kind that is suspended until it is admitted (pure).

What is wrong with a job is what its kind's webhook would refuse; its pod sets are those of the kind.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Final

from clusters.jobs.framework.context import IntegrationSettings, JobContext
from clusters.jobs.framework.errors import ErrorType, JobError
from clusters.jobs.framework.job_kind import JobKind
from clusters.jobs.framework.manifest import JsonObject, dig
from clusters.jobs.framework.store import ObjectStore
from clusters.jobs.registry import KINDS
from queues.manifests import kueue_keys as keys
from queues.manifests.job import JobManifest, job_manifest, read_head
from queues.manifests.pod_template import read_pod_template
from queues.manifests.workload import PodSetSpec
from scheduling.manifest import Fields, MistakeReason, write_metadata

NO_CLUSTER: Final = JobContext(IntegrationSettings(), ObjectStore(), KINDS)
"""A manifest is read by itself: what it refers to may come later."""
_REASONS: Final = {
    ErrorType.INVALID: MistakeReason.INVALID,
    ErrorType.FORBIDDEN: MistakeReason.FORBIDDEN,
    ErrorType.REQUIRED: MistakeReason.REQUIRED,
    ErrorType.DUPLICATE: MistakeReason.DUPLICATE,
    ErrorType.TOO_MANY: MistakeReason.TOO_MANY,
    ErrorType.TOO_LONG: MistakeReason.TOO_LONG,
}


def reader_of(kind: JobKind) -> Callable[[Fields, str], JobManifest]:
    """The reader of a kind's manifests."""

    def read(top: Fields, version: str) -> JobManifest:
        meta, spec = read_head(top)
        spec.ignore(*spec.content)
        content: JsonObject = {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": write_metadata(meta),
            "spec": copy.deepcopy(dict(spec.content)),
        }
        body: JsonObject = copy.deepcopy(content["spec"])
        pod_sets = _read_pod_sets(kind, top, content)
        own_class = kind.priority_class(content) if pod_sets else None
        first = next((name for each in pod_sets if (name := _class_of(each))), "")
        queue = meta.labels.get(keys.QUEUE_NAME, "")
        priority_class = first if own_class is None else own_class
        return job_manifest(top, meta, kind.kind, kind.api_version, body, queue, pod_sets, priority_class)

    return read


def _class_of(pod_set: PodSetSpec) -> str:
    return str(dig(pod_set.template, "spec", "priorityClassName") or "")


def _read_pod_sets(kind: JobKind, top: Fields, content: JsonObject) -> tuple[PodSetSpec, ...]:
    """The pod sets, or none where something is wrong: all of it is reported."""
    report = top.report
    try:
        kind.fill_in(content)
        for error in kind.check_create(copy.deepcopy(content), NO_CLUSTER):
            report.error(top.at(error.field), error.value, error.detail, "", _REASONS[error.type])
        found = kind.pod_sets(copy.deepcopy(content), NO_CLUSTER)
        paths = _paths(kind, copy.deepcopy(content), len(found))
    except JobError as failure:
        report.error(top.at("spec"), None, str(failure))
        return ()
    except (AttributeError, KeyError, TypeError, ValueError) as mistake:
        rule = f"is not the spec of a {kind.kind}: {type(mistake).__name__}: {mistake}"
        report.error(top.at("spec"), None, rule, f"Compare it with the CRD of {kind.plural}.", MistakeReason.WRONG_TYPE)
        return ()
    if not found:
        report.error(top.at("spec"), None, "has no pods", "Give it at least one template.", MistakeReason.REQUIRED)
    return tuple(
        _pod_set(top, path, pod_set, runnable=keys.QUEUE_NAME in content["metadata"].get("labels", {}))
        for path, pod_set in zip(paths, found, strict=True)
    )


def _paths(kind: JobKind, content: JsonObject, count: int) -> Sequence[str]:
    paths = [site.path.removesuffix(".metadata") for site in kind.sites(content)]
    return paths if len(paths) == count and all(paths) else ["spec"] * count


def _pod_set(top: Fields, path: str, pod_set: JsonObject, *, runnable: bool) -> PodSetSpec:
    template = read_pod_template(Fields(top.report, top.at(path), pod_set["template"]), runnable=runnable)
    return PodSetSpec(
        pod_set["name"],
        pod_set["count"],
        template.manifest,
        template.requests,
        pod_set.get("minCount"),
        pod_set.get("topologyRequest") or {},
    )
