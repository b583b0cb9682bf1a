"""AdmissionCheck."""

from dataclasses import dataclass, field
from typing import Any, Final

from scheduling.manifest import Fields, ObjectMeta, read_metadata, write_metadata

_LONGEST_CONTROLLER: Final = 253


@dataclass(frozen=True, slots=True)
class AdmissionCheckSpec:
    """Columns of AdmissionCheck."""

    meta: ObjectMeta
    controller_name: str = ""
    parameters: dict[str, str] = field(default_factory=dict)


def read_admission_check(top: Fields, version: str) -> AdmissionCheckSpec:
    """Read an AdmissionCheck; v1beta1's retryDelayMinutes is gone."""
    top.ignore("status")
    meta = read_metadata(top, namespaced=False)
    spec = top.required_fields("spec")
    controller = spec.text("controllerName", required=True, longest=_LONGEST_CONTROLLER)
    if version == "v1beta1" and spec.take("retryDelayMinutes") is not None:
        spec.warn("retryDelayMinutes", "has no effect: v1beta2 has dropped it")
    parameters = _read_parameters(spec)
    spec.close()
    return AdmissionCheckSpec(meta, controller, parameters)


def _read_parameters(spec: Fields) -> dict[str, str]:
    fields = spec.fields("parameters")
    if fields is None:
        return {}
    parameters = {key: fields.text(key, required=True) for key in ("apiGroup", "kind", "name")}
    fields.close()
    return parameters


def write_admission_check(spec: AdmissionCheckSpec) -> dict[str, Any]:
    """The manifest of an AdmissionCheck."""
    body: dict[str, Any] = {"controllerName": spec.controller_name}
    if spec.parameters:
        body["parameters"] = dict(spec.parameters)
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "AdmissionCheck",
        "metadata": write_metadata(spec.meta),
        "spec": body,
    }
