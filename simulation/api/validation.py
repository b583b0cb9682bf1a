"""Kubernetes' defaults and validation for the served kinds, as far as a scheduler depends on them."""

from __future__ import annotations

import re
from typing import Any

from scheduling.model.limit_range import with_api_defaults
from simulation.api.errors import bad_request, invalid
from simulation.api.objects import JsonObject, annotations_of, condition, labels_of, name_of
from simulation.api.pod_validation import validate_pod_spec
from simulation.api.resources import KUEUE_GROUP, MUTATING, VALIDATING, Resource

_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
_MAX_LABEL_VALUE = 63
_MAX_NAME = 253
_MAX_ANNOTATIONS_BYTES = 256 * 1024

_STATUS_INTEGERS = (
    ("fairSharing", "weightedShare"),
    ("pendingWorkloads",),
    ("reservingWorkloads",),
    ("admittedWorkloads",),
)
"""Fields in the statuses of Kueue's objects that its definitions want as integers."""

_POD_DEFAULTS: JsonObject = {
    "restartPolicy": "Always",
    "schedulerName": "default-scheduler",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "enableServiceLinks": True,
}
_JOB_DEFAULTS: JsonObject = {
    "backoffLimit": 6,
    "completionMode": "NonIndexed",
    "suspend": False,
    "podReplacementPolicy": "TerminatingOrFailed",
}
# The parts of a suspended Job's pod template that may change before it starts (scheduling directives).
_MUTABLE_TEMPLATE_SPEC = ("nodeSelector", "affinity", "tolerations", "schedulingGates")


def with_defaults(resource: Resource, item: JsonObject) -> JsonObject:
    """Return the object as the server stores it, with the defaults of pods, jobs and deployments."""
    spec = dict(item.get("spec") or {})
    if resource.plural == "pods":
        spec = _pod_spec_defaults(spec)
    elif resource.plural == "jobs":
        spec = _job_spec_defaults(spec)
    elif resource.plural in ("deployments", "replicasets", "statefulsets"):
        spec.setdefault("replicas", 1)
        spec["template"] = _template_defaults(spec.get("template") or {})
    elif resource.plural == "limitranges":
        spec["limits"] = [with_api_defaults(entry) for entry in spec.get("limits") or ()]
    elif resource.plural == "namespaces":
        labels = {**labels_of(item), "kubernetes.io/metadata.name": name_of(item)}
        metadata = {**item["metadata"], "labels": labels}
        return {**item, "metadata": metadata, "status": item.get("status") or {"phase": "Active"}}
    # A node has a spec even if nothing is said in it.
    return {**item, "spec": spec} if spec or "spec" in item or resource.plural == "nodes" else item


def _template_defaults(template: JsonObject) -> JsonObject:
    return {**template, "spec": _pod_spec_defaults(dict(template.get("spec") or {}))}


def _pod_spec_defaults(spec: JsonObject) -> JsonObject:
    result = {**_POD_DEFAULTS, **spec}
    for field in ("containers", "initContainers"):
        if isinstance(spec.get(field), list):
            result[field] = [_container_defaults(entry) for entry in spec[field]]
    return result


def _container_defaults(container: JsonObject) -> JsonObject:
    resources = dict(container.get("resources") or {})
    if resources.get("limits"):
        resources["requests"] = {**resources["limits"], **(resources.get("requests") or {})}
    return {"imagePullPolicy": "IfNotPresent", **container, "resources": resources}


def _job_spec_defaults(spec: JsonObject) -> JsonObject:
    result = {**_JOB_DEFAULTS, **spec}
    if "parallelism" not in spec:
        result["parallelism"] = 1
        result.setdefault("completions", 1)
    result["template"] = _template_defaults(spec.get("template") or {})
    return result


def validate(resource: Resource, item: JsonObject) -> None:
    """Refuse any write that Kubernetes refuses. Raises ApiError (422), naming the field."""
    name = str(item["metadata"].get("name", ""))
    if len(name) > _MAX_NAME or not _SUBDOMAIN.fullmatch(name):
        raise invalid(resource.kind, name, "metadata.name", f"{name!r} is not a lowercase RFC 1123 subdomain")
    _validate_metadata(resource, item, name)
    if resource.plural == "pods":
        validate_pod_spec(resource.kind, name, "spec", item["spec"])
    elif resource.plural in ("jobs", "deployments", "replicasets"):
        _validate_workload(resource, item, name)
    elif resource.plural in (MUTATING, VALIDATING):
        for index, webhook in enumerate(item.get("webhooks") or ()):
            _validate_client_config(resource, name, f"webhooks[{index}]", webhook)
    elif resource.plural == "customresourcedefinitions":
        webhook = ((item.get("spec") or {}).get("conversion") or {}).get("webhook")
        if webhook:
            _validate_client_config(resource, name, "spec.conversion.webhook", webhook)


def _validate_client_config(resource: Resource, name: str, path: str, webhook: JsonObject) -> None:
    config = webhook.get("clientConfig") or {}
    if ("url" in config) == ("service" in config):
        raise invalid(resource.kind, name, f"{path}.clientConfig", "exactly one of url or service is required")


def validate_status(resource: Resource, item: JsonObject) -> None:
    """Refuse a status that breaks the definition of its kind. Raises ApiError (422), naming the field."""
    for path in _STATUS_INTEGERS if resource.group == KUEUE_GROUP else ():
        value: Any = item.get("status") or {}
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None and not isinstance(value, int):
            field = ".".join(("status", *path))
            why = f'Invalid value: "number": {field} in body must be of type integer: "number"'
            raise invalid(resource.kind, name_of(item), field, why)


def _validate_metadata(resource: Resource, item: JsonObject, name: str) -> None:
    labels: dict[str, object] = dict(labels_of(item))
    for key, value in labels.items():
        if not isinstance(value, str) or len(value) > _MAX_LABEL_VALUE or not _LABEL_VALUE.fullmatch(value):
            raise invalid(resource.kind, name, f"metadata.labels[{key}]", f"{value!r} is not a label value")
    size = 0
    for key, value in annotations_of(item).items():
        if not isinstance(value, str):
            raise invalid(resource.kind, name, f"metadata.annotations[{key}]", "must be a string")
        size += len(key) + len(value)
    if size > _MAX_ANNOTATIONS_BYTES:
        raise invalid(resource.kind, name, "metadata.annotations", f"must have at most {_MAX_ANNOTATIONS_BYTES} bytes")


def _validate_workload(resource: Resource, item: JsonObject, name: str) -> None:
    spec = item["spec"]
    validate_pod_spec(resource.kind, name, "spec.template.spec", spec["template"]["spec"])
    if resource.plural != "jobs":
        selector = (spec.get("selector") or {}).get("matchLabels") or {}
        labels = (spec["template"].get("metadata") or {}).get("labels") or {}
        if not selector or any(labels.get(key) != value for key, value in selector.items()):
            raise invalid(resource.kind, name, "spec.template.metadata.labels", "`selector` does not match the labels")
        return
    if spec["template"]["spec"].get("restartPolicy") in (None, "", "Always"):
        why = 'Required value: valid values: "OnFailure", "Never"'
        raise invalid(resource.kind, name, "spec.template.spec.restartPolicy", why)
    for field in ("parallelism", "completions", "backoffLimit"):
        value = spec.get(field, 0)
        if not isinstance(value, int) or value < 0:
            raise invalid(resource.kind, name, f"spec.{field}", "must be greater than or equal to 0")
    if spec["completionMode"] == "Indexed" and "completions" not in spec:
        raise invalid(resource.kind, name, "spec.completions", "required when the completion mode is Indexed")


def validate_update(resource: Resource, live: JsonObject, updated: JsonObject) -> None:
    """Refuse changes of fields that are immutable in Kubernetes. Raises ApiError (422)."""
    name = name_of(live)
    if resource.plural == "pods":
        _validate_pod_update(name, live["spec"], updated["spec"])
    elif resource.plural == "jobs":
        _validate_job_update(name, live, updated)
    elif resource.plural in ("deployments", "replicasets") and live["spec"].get("selector") != updated["spec"].get(
        "selector"
    ):
        raise invalid(resource.kind, name, "spec.selector", "field is immutable")


def _validate_pod_update(name: str, live: JsonObject, updated: JsonObject) -> None:
    gated = bool(live.get("schedulingGates"))
    new_gates = {gate["name"] for gate in updated.get("schedulingGates") or ()}
    if not new_gates <= {gate["name"] for gate in live.get("schedulingGates") or ()}:
        raise invalid("Pod", name, "spec.schedulingGates", "only deletion is allowed")
    if live.get("nodeName") != updated.get("nodeName"):
        raise invalid("Pod", name, "spec.nodeName", "may be set by the binding subresource only")
    ignored = {"schedulingGates", "activeDeadlineSeconds", "terminationGracePeriodSeconds"}
    ignored |= {"tolerations"} | ({"nodeSelector", "affinity"} if gated else set())
    if _images_blanked(live, ignored) != _images_blanked(updated, ignored):
        why = "pod updates may not change fields other than images, activeDeadlineSeconds, tolerations and gates"
        raise invalid("Pod", name, "spec", why)
    before = live.get("tolerations") or []
    if any(entry not in (updated.get("tolerations") or []) for entry in before):
        raise invalid("Pod", name, "spec.tolerations", "existing tolerations may not be changed")


def _images_blanked(spec: JsonObject, ignored: set[str]) -> JsonObject:
    result: JsonObject = {key: value for key, value in spec.items() if key not in ignored}
    for field in ("containers", "initContainers"):
        if field in result:
            result[field] = [{**entry, "image": ""} for entry in result[field]]
    return result


def _validate_job_update(name: str, live: JsonObject, updated: JsonObject) -> None:
    old, new = live["spec"], updated["spec"]
    for field in ("completions", "completionMode", "selector"):
        if old.get(field) != new.get(field):
            elastic = field == "completions" and new.get("completions") == new.get("parallelism")
            if not (elastic and old["completionMode"] == "Indexed"):
                raise invalid("Job", name, f"spec.{field}", "field is immutable")
    # Kubernetes lets scheduling directives change while the Job is suspended and has not started since.
    suspended = old.get("suspend", False)
    started = (live.get("status") or {}).get("startTime") is not None
    mutable = suspended and not started and condition(live, "Complete") is None
    if _fixed_template(old["template"], mutable) != _fixed_template(new["template"], mutable):
        raise invalid("Job", name, "spec.template", "field is immutable")


def _fixed_template(template: JsonObject, mutable: bool) -> Any:
    if not mutable:
        return template
    spec = {key: value for key, value in template["spec"].items() if key not in _MUTABLE_TEMPLATE_SPEC}
    metadata = {
        key: value for key, value in (template.get("metadata") or {}).items() if key not in ("labels", "annotations")
    }
    return spec, metadata


def validate_binding(pod: JsonObject, binding: JsonObject) -> str:
    """Return the node that a Binding names. Raises ApiError (400) if it names none or the pod has scheduling gates."""
    target = binding.get("target") or {}
    if target.get("kind", "Node") != "Node" or not target.get("name"):
        raise bad_request("a binding's target must be a Node with a name")
    if pod["spec"].get("schedulingGates"):
        raise bad_request(f"pod {name_of(pod)} has non-empty .spec.schedulingGates")
    return str(target["name"])
