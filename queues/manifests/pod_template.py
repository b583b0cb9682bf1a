"""Pod templates: stored as submitted; the fields that determine a workload's requests and nodes are checked."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from queues.manifests.pod_rules import is_extended
from scheduling.manifest import FieldReader, MistakeReason
from scheduling.manifest.field_reader import suggestion
from scheduling.manifest.metadata import read_annotations
from scheduling.manifest.syntax import dns_label, label_value, qualified_name
from scheduling.manifest.taints import read_tolerations
from scheduling.model.pod import PodTemplate
from scheduling.model.quantity import NANOS, to_amount
from scheduling.model.resources import PODS
from scheduling.model.selectors import required_node_affinity

_POD_SPEC_FIELDS: Final = frozenset(
    [
        "activeDeadlineSeconds",
        "affinity",
        "automountServiceAccountToken",
        "containers",
        "dnsConfig",
        "dnsPolicy",
        "enableServiceLinks",
        "ephemeralContainers",
        "evictionResponders",
        "hostAliases",
        "hostIPC",
        "hostNetwork",
        "hostPID",
        "hostUsers",
        "hostname",
        "hostnameOverride",
        "imagePullSecrets",
        "initContainers",
        "nodeName",
        "nodeSelector",
        "os",
        "overhead",
        "preemptionPolicy",
        "priority",
        "priorityClassName",
        "readinessGates",
        "resourceClaims",
        "resources",
        "restartPolicy",
        "runtimeClassName",
        "schedulerName",
        "schedulingGates",
        "schedulingGroup",
        "securityContext",
        "serviceAccount",
        "serviceAccountName",
        "setHostnameAsFQDN",
        "shareProcessNamespace",
        "subdomain",
        "terminationGracePeriodSeconds",
        "tolerations",
        "topologySpreadConstraints",
        "volumes",
        "workloadRef",
    ]
)
_CONTAINER_FIELDS: Final = frozenset(
    [
        "args",
        "command",
        "env",
        "envFrom",
        "image",
        "imagePullPolicy",
        "lifecycle",
        "livenessProbe",
        "name",
        "ports",
        "readinessProbe",
        "resizePolicy",
        "resources",
        "restartPolicy",
        "restartPolicyRules",
        "securityContext",
        "startupProbe",
        "stdin",
        "stdinOnce",
        "terminationMessagePath",
        "terminationMessagePolicy",
        "tty",
        "volumeDevices",
        "volumeMounts",
        "workingDir",
    ]
)


@dataclass(frozen=True, slots=True)
class PodTemplateSpec:
    """A template as submitted, and the requests of one of its pods in base units, by Kubernetes' formula."""

    manifest: Mapping[str, Any] = field(default_factory=dict)
    requests: Mapping[str, int] = field(default_factory=dict)

    @property
    def annotations(self) -> Mapping[str, str]:
        return (self.manifest.get("metadata") or {}).get("annotations") or {}

    @property
    def priority_class_name(self) -> str:
        return (self.manifest.get("spec") or {}).get("priorityClassName") or ""


def read_pod_template(template: FieldReader, *, runnable: bool = True, limits_hold: bool = True) -> PodTemplateSpec:
    """Read a PodTemplateSpec.

    `runnable`: containers must be there, else their absence is a warning. `limits_hold`: a request above its limit is
    refused, as Kubernetes refuses a pod (a Workload object may carry it; it then waits as Misconfigured).
    """
    mistakes = len(template.report.errors)
    metadata = template.fields("metadata")
    if metadata:
        metadata.text_map("labels", key_syntax=qualified_name, value_syntax=label_value)
        read_annotations(metadata)
    spec = template.required_fields("spec")
    template.close()
    _read_pod_spec(spec, runnable)
    if len(template.report.errors) > mistakes:
        return PodTemplateSpec()
    manifest = {key: value for key, value in template.content.items() if value is not None}
    pod = PodTemplate.from_manifest(manifest)
    exceeded = pod.exceeded_limit() if limits_hold else None
    if exceeded:
        rule = f"has a request above its limit ({exceeded})"
        spec.report.error(spec.path, None, rule, "Raise the limit or lower the request.")
    requests = {name: to_amount(name, amount) for name, amount in pod.effective_requests().items()}
    return PodTemplateSpec(manifest, requests)


def _read_pod_spec(spec: FieldReader, runnable: bool) -> None:
    _check_known(spec, _POD_SPEC_FIELDS)
    names: list[str] = []
    for key in ("initContainers", "containers"):
        for container in spec.items(key):
            _read_container(container, names)
    if not spec.content.get("containers"):
        if runnable:
            spec.require("containers", "Add at least one container.")
        else:
            spec.warn("containers", "Required value: Kubernetes does not run a pod without containers")
    spec.text_map("nodeSelector", key_syntax=qualified_name, value_syntax=label_value)
    read_tolerations(spec, "tolerations")
    _read_affinity(spec)
    _read_quantities(spec, "overhead")
    _read_resources(spec)
    spec.text("priorityClassName")


def _read_container(container: FieldReader, names: list[str]) -> None:
    _check_known(container, _CONTAINER_FIELDS)
    name = container.text("name", required=True, syntax=dns_label)
    if name and name in names:
        container.error(
            "name", "Duplicate value: another container has this name", "Rename one.", MistakeReason.DUPLICATE
        )
    names.append(name)
    _read_resources(container)


def _read_resources(holder: FieldReader) -> None:
    resources = holder.fields("resources")
    if resources is None:
        return
    _read_quantities(resources, "requests")
    _read_quantities(resources, "limits")
    resources.ignore("claims")
    resources.close()


def _read_quantities(holder: FieldReader, key: str) -> None:
    quantities = holder.fields(key)
    if quantities is None:
        return
    for name in quantities.content:
        broken = qualified_name(name)
        if broken:
            quantities.error(name, f"is a resource name: {broken}")
            continue
        if name == PODS:
            quantities.error(name, "is reserved for counting pods", "Remove it.", MistakeReason.FORBIDDEN)
            continue
        nanos = quantities.quantity(name)
        if nanos is None:
            if not quantities.has(name):
                quantities.error(name, "must be a quantity, like 500m, 2 or 10Gi", "Add one.", MistakeReason.REQUIRED)
        elif nanos % NANOS and is_extended(name):
            remedy = "For part of a device, request one device together with memory or cores."
            quantities.error(name, "must be a whole number, as Kubernetes counts devices", remedy)


def _read_affinity(spec: FieldReader) -> None:
    affinity = spec.fields("affinity")
    if affinity is None:
        return
    try:
        required_node_affinity(spec.content)
    except (KeyError, ValueError, TypeError, AttributeError) as mistake:
        spec.error("affinity", f"has a node selector that can't be read: {mistake}")


def _check_known(fields: FieldReader, known: frozenset[str]) -> None:
    if fields.content.keys() <= known:
        return
    for key in fields.content:
        if key not in known:
            rule = "unknown field"
            fields.error(key, rule, suggestion(key, known), MistakeReason.UNKNOWN_FIELD)
