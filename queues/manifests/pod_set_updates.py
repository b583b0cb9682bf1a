"""Updates of pod sets by an admission check that is Ready: labels, annotations, node selectors, tolerations."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from foundation.exceptions import ManifestErrors
from scheduling.manifest import FieldReader, MistakeReason, ValidationReport
from scheduling.manifest.syntax import label_value, qualified_name
from scheduling.manifest.taints import read_tolerations

_FIELD: Final = "pod_set_updates"


def read_pod_set_updates(updates: Sequence[Any], pod_sets: Collection[str]) -> list[dict[str, Any]]:
    """Read the updates as Kubernetes writes them in `status.admissionChecks[].podSetUpdates`, without empty fields.

    Each names one of the workload's pod sets, at most once. Raises `ManifestErrors` with every mistake.
    """
    report = ValidationReport()
    found: list[dict[str, Any]] = []
    names: set[str] = set()
    for index, update in enumerate(updates):
        path = f"{_FIELD}[{index}]"
        if not isinstance(update, Mapping):
            report.error(path, update, "must be a mapping", "", MistakeReason.WRONG_TYPE)
            continue
        fields = FieldReader(report, path, update)
        read = _read(fields)
        name = read["name"]
        if name not in pod_sets:
            fields.error("name", "must be a pod set of the workload", f"It has {', '.join(sorted(pod_sets))}.")
        elif name in names:
            fields.error("name", "Duplicate value", "", MistakeReason.DUPLICATE)
        names.add(name)
        found.append({key: value for key, value in read.items() if value})
    if report.errors:
        raise ManifestErrors(report.errors)
    return found


def _read(fields: FieldReader) -> dict[str, Any]:
    read = {
        "name": fields.text("name"),
        "labels": fields.text_map("labels", key_syntax=qualified_name, value_syntax=label_value),
        "annotations": fields.text_map("annotations", key_syntax=qualified_name),
        "nodeSelector": fields.text_map("nodeSelector", key_syntax=qualified_name, value_syntax=label_value),
        "tolerations": read_tolerations(fields, "tolerations"),
    }
    fields.close()
    return read
