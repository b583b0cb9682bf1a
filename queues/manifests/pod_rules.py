"""Kubernetes' rules for the pods of a Job, Pod or Deployment, whose templates the API server validates."""

from collections.abc import Mapping
from typing import Final

from scheduling.manifest import FieldReader, MistakeReason
from scheduling.model.quantity import InvalidQuantity, parse_quantity

_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")


def check_pod_rules(template: FieldReader, restart_policies: tuple[str, ...]) -> None:
    """Report mistakes that a real API server answers with 422. A job that it refuses would hold quota and never
    start."""
    content = template.content.get("spec")
    if not isinstance(content, Mapping):
        return
    spec = FieldReader(template.report, template.at("spec"), content)
    _check_token(spec, "restartPolicy", restart_policies)
    volumes = [volume.content.get("name") for volume in _mappings(spec, "volumes")]
    for key in ("initContainers", "containers"):
        for container in _mappings(spec, key):
            container.text("image", required=True)
            _check_token(container, "imagePullPolicy", _PULL_POLICIES)
            _check_mounts(container, volumes)
            _check_extended_resources(container)


def _check_token(fields: FieldReader, key: str, supported: tuple[str, ...]) -> None:
    value = fields.content.get(key)
    if value is None or value == "" or value in supported:
        return
    remedy = f"Supported values: {', '.join(supported)}."
    if isinstance(value, str):
        fields.error(key, "Unsupported value", remedy, MistakeReason.NOT_SUPPORTED)
    else:
        fields.error(key, "must be a string", remedy, MistakeReason.WRONG_TYPE)


def is_extended(resource: str) -> bool:
    """Return whether Kubernetes treats the resource as a device plugin's: its name has a domain other than Kubernetes'
    own."""
    domain = resource.rpartition("/")[0]
    return bool(domain) and domain != "kubernetes.io" and not domain.endswith(".kubernetes.io")


def _check_mounts(container: FieldReader, volumes: list[object]) -> None:
    for mount in _mappings(container, "volumeMounts"):
        mount.text("mountPath", required=True)
        name = mount.text("name", required=True)
        if name and name not in volumes:
            remedy = "Add a volume of this name to the pod's volumes."
            mount.error("name", "Not found: no volume of the pod has this name", remedy)


def _check_extended_resources(container: FieldReader) -> None:
    """A limit that is not there is a warning only: the examples of Kueue's and HAMi's guides leave it out."""
    resources = container.content.get("resources")
    if not isinstance(resources, Mapping):
        return
    requests, limits = (_mapping(resources.get(key)) for key in ("requests", "limits"))
    for name in filter(is_extended, map(str, requests)):
        path = f"{container.at('resources')}.limits[{name}]"
        if limits.get(name) is None:
            text = "is missing: Kubernetes rejects a request of an extended resource without an equal limit"
            container.report.warn(path, text)
        elif not _same_amount(requests[name], limits[name]):
            path = f"{container.at('resources')}.requests[{name}]"
            rule = f"must be equal to the limit of {name}, which is {limits[name]}"
            container.report.error(path, requests[name], rule, "Set both to the same value.")


def _same_amount(first: object, second: object) -> bool:
    try:
        return parse_quantity(str(first)) == parse_quantity(str(second))
    except InvalidQuantity:
        return True  # the mistake is reported for the quantity itself


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _mappings(holder: FieldReader, key: str) -> list[FieldReader]:
    """Return the mappings of a list; of another type, `read_pod_template` speaks where it reads the list."""
    value = holder.content.get(key)
    items = value if isinstance(value, list) else []
    return [
        FieldReader(holder.report, f"{holder.at(key)}[{index}]", item)
        for index, item in enumerate(items)
        if isinstance(item, Mapping)
    ]
