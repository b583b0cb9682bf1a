"""Workloads in kueueweb's JSON: read field by field, with every error located by index and path.

A pod set gives the requests of each pod either as `requests` (with `node_selector` and `tolerations`) or as a whole pod
`template`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import orjson

from foundation.exceptions import ManifestErrors
from queues.manifests.pod_template import PodTemplateSpec, read_pod_template
from queues.manifests.topology_request import read_topology_request
from queues.manifests.workload import MAX_POD_SETS, PodSetSpec, WorkloadSpec
from scheduling.manifest import FieldReader, MistakeReason, ValidationReport
from scheduling.manifest.field_reader import INT32_MIN
from scheduling.manifest.metadata import read_annotations
from scheduling.manifest.syntax import (
    dns_label,
    dns_subdomain,
    generate_name_prefix,
    label_value,
    qualified_name,
)

_SHORT_FORM: Final = ("requests", "node_selector", "tolerations")
_CLASS_KINDS: Final = ("WorkloadPriorityClass", "PriorityClass")
_TEMPLATE_OF_REQUESTS: Final = re.compile(r"\.template\.spec\.containers\[0\]\.resources\.requests\b")
_TEMPLATE_OF_SHORT_FORM: Final = re.compile(r"\.template\.spec\.(nodeSelector|tolerations)\b")
_TOPOLOGY_FIELDS: Final[Mapping[str, str]] = {
    "required": "required",
    "preferred": "preferred",
    "unconstrained": "unconstrained",
    "pod_index_label": "podIndexLabel",
    "sub_group_index_label": "subGroupIndexLabel",
    "sub_group_count": "subGroupCount",
    "pod_set_group_name": "podSetGroupName",
    "pod_set_slice_required_topology": "podSetSliceRequiredTopology",
    "pod_set_slice_size": "podSetSliceSize",
}


@dataclass(frozen=True, slots=True)
class KnownDocuments:
    """Documents and pod sets of a request that were read without an error, by their JSON, documents without their
    names. Most workloads of a request differ only in their name, and reading is most of the cost.
    """

    workloads: dict[bytes, WorkloadSpec] = field(default_factory=dict)
    pod_sets: dict[bytes, tuple[PodSetSpec, ...]] = field(default_factory=dict)


def read_workload(document: Any, index: int, known: KnownDocuments | None = None) -> WorkloadSpec:
    """Read a document as a workload; raises `ManifestErrors` with all its mistakes."""
    report = ValidationReport(document=index)
    if not isinstance(document, Mapping):
        report.error("", document, "must be a JSON object", reason=MistakeReason.WRONG_TYPE)
        raise ManifestErrors(report.errors)
    known = known or KnownDocuments()
    name = str(document.get("name") or "")
    text = _json({**document, "name": None}) if name == document.get("name") and dns_subdomain(name) is None else None
    like = known.workloads.get(text) if text is not None else None
    if like is not None:
        return replace(like, name=name, document=index)
    spec = _read(FieldReader(report, "", document), index, known)
    if report.errors:
        raise ManifestErrors(report.errors)
    if text is not None:
        known.workloads[text] = spec
    return spec


def _json(content: Any) -> bytes | None:
    """Return the content as JSON; None if it has none: YAML may have keys that are numbers, and integers beyond 64
    bits."""
    try:
        return orjson.dumps(content)
    except orjson.JSONEncodeError:
        return None


def _read(top: FieldReader, index: int, known: KnownDocuments) -> WorkloadSpec:
    prefix = top.text("generate_name", syntax=generate_name_prefix)
    if prefix and top.has("name"):
        top.error("generate_name", "must not be combined with name", "Remove one of the two.", MistakeReason.FORBIDDEN)
    priority_class = top.text("priority_class", syntax=dns_subdomain)
    kind = top.text("priority_class_kind", _CLASS_KINDS[0])
    if kind not in _CLASS_KINDS:
        top.error("priority_class_kind", f"must be {' or '.join(_CLASS_KINDS)}", "", MistakeReason.NOT_SUPPORTED)
    spec = WorkloadSpec(
        namespace=top.text("namespace", required=True, syntax=dns_label),
        name=prefix or top.text("name", required=True, syntax=dns_subdomain),
        generate_name=bool(prefix),
        queue_name=top.text("local_queue", syntax=dns_subdomain),
        pod_sets=_read_pod_sets(top, known),
        priority=top.optional_integer("priority", minimum=INT32_MIN),
        priority_class_kind=kind if priority_class else "",
        priority_class_name=priority_class,
        active=top.boolean("active", default=True),
        never_preempt=top.boolean("never_preempt"),
        maximum_execution_seconds=top.optional_integer("maximum_execution_seconds", minimum=1),
        labels=top.text_map("labels", key_syntax=qualified_name, value_syntax=label_value),
        annotations=read_annotations(top),
        document=index,
    )
    top.close()
    return spec


def _read_pod_sets(top: FieldReader, known: KnownDocuments) -> tuple[PodSetSpec, ...]:
    text = _json(top.take("pod_sets"))
    if text is not None and text in known.pod_sets:
        return known.pod_sets[text]
    before = len(top.report.errors), len(top.report.warnings)
    found = _read_items(top)
    if text is not None and (len(top.report.errors), len(top.report.warnings)) == before:
        known.pod_sets[text] = found
    return found


def _read_items(top: FieldReader) -> tuple[PodSetSpec, ...]:
    found: list[PodSetSpec] = []
    for item in top.items("pod_sets", min_items=1, max_items=MAX_POD_SETS):
        pod_set = _read_pod_set(item)
        if any(other.name == pod_set.name for other in found):
            item.error("name", "Duplicate value", "Rename one.", MistakeReason.DUPLICATE)
        if pod_set.min_count is not None and any(other.min_count is not None for other in found):
            item.error("min_count", "may be set on one pod set only", "Remove it.", MistakeReason.FORBIDDEN)
        found.append(pod_set)
    return tuple(found)


def _read_pod_set(item: FieldReader) -> PodSetSpec:
    count = item.integer("count", 1)
    least = item.optional_integer("min_count", minimum=1)
    if least is not None and least > count:
        item.error("min_count", f"must be at most count ({count})")
    template = _read_template(item)
    pod_set = PodSetSpec(
        name=item.text("name", "main", syntax=dns_label),
        count=count,
        template=template.manifest,
        requests=template.requests,
        min_count=least,
        topology_request=_read_topology_request(item),
    )
    item.close()
    return pod_set


def _read_template(item: FieldReader) -> PodTemplateSpec:
    short = [key for key in _SHORT_FORM if item.has(key)]
    item.ignore(*_SHORT_FORM)
    if not item.has("template"):
        return _read_short_form(item)
    if short:
        item.error(
            short[0], "must not be combined with template", "Write it into the template.", MistakeReason.FORBIDDEN
        )
    template = item.fields("template")
    return read_pod_template(template) if template else PodTemplateSpec()


def _read_short_form(item: FieldReader) -> PodTemplateSpec:
    """Read a template of one container with these `requests`; its errors name the fields of the short form."""
    requests = item.content.get("requests")
    resources: dict[str, Any] = {"requests": {} if requests is None else requests}
    if isinstance(requests, Mapping):
        # Kubernetes requires both to be equal.
        limits = {name: amount for name, amount in requests.items() if "/" in str(name)}
        if limits:
            resources["limits"] = limits
    spec: dict[str, Any] = {"containers": [{"name": "main", "resources": resources}]}
    if item.has("node_selector"):
        spec["nodeSelector"] = item.content["node_selector"]
    if item.has("tolerations"):
        spec["tolerations"] = item.content["tolerations"]
    report = ValidationReport(item.report.document)
    template = read_pod_template(FieldReader(report, item.at("template"), {"spec": spec}))
    for error in report.errors:
        if ".resources.limits" not in error.path:  # limits repeat the requests
            item.report.error(
                _short_path(error.path), error.value, error.rule, error.remedy, MistakeReason(error.reason)
            )
    return template


def _short_path(path: str) -> str:
    path = _TEMPLATE_OF_REQUESTS.sub(".requests", path)
    return _TEMPLATE_OF_SHORT_FORM.sub(
        lambda found: ".node_selector" if found[1] == "nodeSelector" else ".tolerations", path
    )


def _read_topology_request(item: FieldReader) -> dict[str, Any]:
    request = item.fields("topology_request")
    if request is None:
        return {}
    report = ValidationReport(item.report.document)
    for key in request.content:
        if key not in _TOPOLOGY_FIELDS:
            rule = "unknown field"
            request.error(key, rule, f"Known: {', '.join(_TOPOLOGY_FIELDS)}.", MistakeReason.UNKNOWN_FIELD)
    content = {_TOPOLOGY_FIELDS[key]: value for key, value in request.content.items() if key in _TOPOLOGY_FIELDS}
    found = read_topology_request(FieldReader(report, item.path, {"topologyRequest": content}))
    snake = {camel: ours for ours, camel in _TOPOLOGY_FIELDS.items()} | {"topologyRequest": "topology_request"}
    for error in report.errors:
        path = ".".join(snake.get(part, part) for part in error.path.split("."))
        item.report.error(path, error.value, error.rule, error.remedy, MistakeReason(error.reason))
    return found
