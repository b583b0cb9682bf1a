"""JobFlows of Volcano (flow.volcano.sh) as jobs that start after each other (pure).

A flow makes a job from each JobTemplate that it names, once the jobs of its targets have completed. Ours are stored at
once, and each names the jobs after which it starts. Volcano evaluates no probes, and refuses no flow that has some.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from clusters.jobs.volcano.job_spec import task_name
from clusters.manifests.translation.translated import JsonObject, Refusal, Translation
from clusters.manifests.translation.volcano_field_types import (
    flow_type_mistakes,
    template_type_mistakes,
    without_nulls,
)
from clusters.manifests.translation.volcano_job_objects import translate_job
from queues.manifests import kueue_keys as keys
from queues.manifests.start_order import MAX_JOBS
from scheduling.manifest import MistakeReason
from scheduling.manifest.syntax import label_value

_JOB: Final = "batch.volcano.sh/v1alpha1"
_PROBES: Final = ("httpGetList", "tcpSocketList", "taskStatusList")
_DELETE: Final = "delete"
_POLICIES: Final = ("", "retain", _DELETE)
_SPEC_FIELDS: Final = frozenset({"flows", "jobRetainPolicy"})
_FLOW_FIELDS: Final = frozenset({"name", "dependsOn", "patch", "maxRetry"})
_ORDER_FIELDS: Final = frozenset({"targets", "probe"})
_PATCH_FIELDS: Final = frozenset({"jobSpec"})
_RESET_BY_PATCH: Final = ("minAvailable", "maxRetry")
"""Fields that Volcano takes from a patch also if the patch does not have them."""

Content = Mapping[str, Any]


def translate_flow(content: Content, templates: Mapping[str, Content]) -> Translation:
    """Return the jobs of a flow. `templates`: the JobTemplates of its namespace in the request, by name."""
    content = without_nulls(content)
    made = Translation(f"{content['apiVersion']} JobFlow")
    if made.refuse_all(flow_type_mistakes(content)) or made.refuse_all(_mistakes(content, templates)):
        return made
    _Flow(content, templates, made).translate()
    return made


def named_flows(content: Content) -> list[str]:
    """Return the names of the templates of a flow, whatever the types of its other fields are."""
    spec = content.get("spec")
    flows = spec.get("flows") if isinstance(spec, Mapping) else None
    items = flows if isinstance(flows, list) else []
    return [str(flow.get("name")) for flow in items if isinstance(flow, Mapping)]


def flow_mistakes(content: Content) -> list[Refusal]:
    """Return the mistakes of a flow alone, whatever its templates are."""
    content = without_nulls(content)
    return [*flow_type_mistakes(content)] or [*_mistakes(content, None)]


def template_mistakes(content: Content) -> list[Refusal]:
    """Return the mistakes of a template, as those of a job of its spec."""
    content = without_nulls(content)
    job = {"apiVersion": _JOB, "kind": "Job", "metadata": content["metadata"], "spec": content.get("spec") or {}}
    return [*template_type_mistakes(content)] or translate_job(job).refusals


def _mistakes(content: Content, templates: Mapping[str, Content] | None) -> Iterator[Refusal]:
    """Yield the mistakes of a flow. `templates`: None if they are not known."""
    yield from _unknown_fields("spec", content["spec"], _SPEC_FIELDS)
    flows = content["spec"].get("flows") or ()
    if not flows:
        yield Refusal("spec.flows", None, "Required value", "Add a flow.", MistakeReason.REQUIRED)
    if len(flows) > MAX_JOBS:
        yield Refusal("spec.flows", len(flows), f"must have at most {MAX_JOBS} flows", "", MistakeReason.TOO_MANY)
    if (policy := content["spec"].get("jobRetainPolicy") or "") not in _POLICIES:
        remedy = "Supported are retain, delete."
        yield Refusal("spec.jobRetainPolicy", policy, "Unsupported value", remedy, MistakeReason.NOT_SUPPORTED)
    if broken := label_value(_object_text(content, content["metadata"]["name"])):
        yield Refusal("metadata.name", content["metadata"]["name"], f"with its namespace as a label {broken}")
    names = [flow["name"] for flow in flows]
    for number, flow in enumerate(flows):
        yield from _flow_mistakes(f"spec.flows[{number}]", flow, names[:number], names)
        if templates is not None and flow["name"] not in templates:
            remedy = "Add the JobTemplate to the request: it is stored only as the jobs of a flow."
            rule = "Not found: the request has no JobTemplate of this name in the namespace"
            yield Refusal(f"spec.flows[{number}].name", flow["name"], rule, remedy)
    if _is_cyclic({flow["name"]: set(_targets(flow)) for flow in flows}):
        yield Refusal("spec.flows", None, "dependsOn forms a cycle", "Let one of these flows start first.")


def _flow_mistakes(path: str, flow: Content, earlier: list[str], names: list[str]) -> Iterator[Refusal]:
    yield from _unknown_fields(path, flow, _FLOW_FIELDS)
    yield from _unknown_fields(f"{path}.dependsOn", flow.get("dependsOn") or {}, _ORDER_FIELDS)
    probe = (flow.get("dependsOn") or {}).get("probe") or {}
    yield from _unknown_fields(f"{path}.dependsOn.probe", probe, frozenset(_PROBES))
    yield from _unknown_fields(f"{path}.patch", flow.get("patch") or {}, _PATCH_FIELDS)
    if flow["name"] in earlier:
        yield Refusal(f"{path}.name", flow["name"], "Duplicate value", "Name each flow once.", MistakeReason.DUPLICATE)
    for number, target in enumerate(_targets(flow)):
        if target not in names:
            place = f"{path}.dependsOn.targets[{number}]"
            yield Refusal(place, target, "Not found: no flow of this name", "Correct it.")
    for name in _PROBES:
        if probe.get(name):
            rule = "Unsupported value: a job starts when its targets have completed; Volcano evaluates no probes either"
            remedy = "Remove it, or let the job itself wait."
            yield Refusal(f"{path}.dependsOn.probe.{name}", None, rule, remedy, MistakeReason.NOT_SUPPORTED)
    for number, task in enumerate(((flow.get("patch") or {}).get("jobSpec") or {}).get("tasks") or ()):
        if task.get("template"):
            rule = "Unsupported value: templates are not merged"
            remedy = "Write a JobTemplate with this template."
            place = f"{path}.patch.jobSpec.tasks[{number}].template"
            yield Refusal(place, None, rule, remedy, MistakeReason.NOT_SUPPORTED)


def _unknown_fields(path: str, holder: Content, known: frozenset[str]) -> Iterator[Refusal]:
    for name in sorted(holder.keys() - known):
        yield Refusal(f"{path}.{name}", None, "unknown field", reason=MistakeReason.UNKNOWN_FIELD)


def _is_cyclic(targets: Mapping[str, set[str]]) -> bool:
    left = {name: before & targets.keys() for name, before in targets.items()}
    while free := [name for name, before in left.items() if not before & left.keys()]:
        for name in free:
            del left[name]
    return bool(left)


def _targets(flow: Content) -> list[str]:
    return [*((flow.get("dependsOn") or {}).get("targets") or ())]


def _object_text(content: Content, name: str) -> str:
    """Return the text with which Volcano names an object in a label."""
    return f"{content['metadata'].get('namespace') or 'default'}.{name}"


class _Flow:
    """One flow without mistakes of its own."""

    def __init__(self, content: Content, templates: Mapping[str, Content], made: Translation) -> None:
        self._content, self._templates, self._made = content, templates, made
        self._flows: list[Content] = content["spec"]["flows"]
        self._deletes = content["spec"].get("jobRetainPolicy") == _DELETE

    def translate(self) -> None:
        for number, flow in enumerate(self._flows):
            self._add_job(f"spec.flows[{number}]", flow)
        if self._deletes:
            self._made.keep(
                "spec.jobRetainPolicy", f"{keys.RETAIN_POLICY}: the jobs are deleted when all have succeeded"
            )

    def _add_job(self, path: str, flow: Content) -> None:
        one = translate_job(self._job(flow))
        for refusal in one.refusals:
            where = f"JobTemplate {flow['name']}, {refusal.path}"
            self._made.refuse(f"{path}.name", refusal.value, f"{where}: {refusal.rule}", refusal.remedy, refusal.reason)
        if targets := _targets(flow):
            one.keep(f"{path}.dependsOn.targets", f"{keys.START_AFTER}: {', '.join(map(self._job_name, targets))}")
        if flow.get("maxRetry"):
            one.lose(f"{path}.maxRetry", "not a field of a flow: set it in the JobTemplate, or in patch.jobSpec")
        one.source = self._made.source
        self._made.kept += one.kept
        self._made.lost += one.lost
        self._made.manifests += [one.annotated(manifest) for manifest in one.manifests]

    def _job(self, flow: Content) -> JsonObject:
        name, metadata = flow["name"], self._content["metadata"]
        template = self._templates[name]
        told = {
            keys.BY_JOB_TEMPLATE: _object_text(self._content, name),
            keys.BY_JOB_FLOW: _object_text(self._content, metadata["name"]),
        }
        annotations, labels = dict(told), dict(told)
        if queue := (metadata.get("labels") or {}).get(keys.QUEUE_NAME):
            labels[keys.QUEUE_NAME] = queue
        if targets := _targets(flow):
            annotations[keys.START_AFTER] = ",".join(map(self._job_name, dict.fromkeys(targets)))
        if self._deletes:
            annotations[keys.RETAIN_POLICY] = _DELETE
        made: JsonObject = {"name": self._job_name(name), "labels": labels, "annotations": annotations}
        if metadata.get("namespace"):
            made["namespace"] = metadata["namespace"]
        spec = _patched(template.get("spec") or {}, (flow.get("patch") or {}).get("jobSpec") or {})
        return {"apiVersion": _JOB, "kind": "Job", "metadata": made, "spec": spec}

    def _job_name(self, flow: str) -> str:
        return f"{self._content['metadata']['name']}-{flow}"


def _patched(spec: Content, patch: Content) -> JsonObject:
    """Return the spec of a template with the patch of a flow, merged as Volcano merges it."""
    if not patch:
        return dict(spec)
    merged = {key: value for key, value in spec.items() if key not in _RESET_BY_PATCH} | dict(patch)
    if "volumes" in patch:
        merged["volumes"] = _by_key("mountPath", spec.get("volumes") or (), patch["volumes"])
    if "tasks" in patch:
        before = _named_tasks(spec.get("tasks") or ())
        templates = {task["name"]: task.get("template") for task in before}
        tasks = [{**task, "template": templates.get(task["name"])} for task in _named_tasks(patch["tasks"])]
        merged["tasks"] = _by_key("name", before, tasks)
    if "plugins" in patch:
        plugins = dict(spec.get("plugins") or {})
        for name, arguments in patch["plugins"].items():
            plugins[name] = [*(plugins.get(name) or ()), *(arguments or ())]
        merged["plugins"] = plugins
    return merged


def _named_tasks(tasks: Iterable[Content]) -> list[JsonObject]:
    """Return the tasks with the names that unnamed ones have by default: without, all of them would be one task."""
    return [{**task, "name": task_name(task, number)} for number, task in enumerate(tasks)]


def _by_key(key: str, base: Any, patch: Any) -> list[JsonObject]:
    """Return the items of a list, replaced by those of the patch with the same key; the others of the patch follow."""
    found = {item.get(key): item for item in base}
    return [*(found | {item.get(key): item for item in patch}).values()]
