"""The types of the fields that a translation reads, as Volcano's CRDs state them (pure).

An object without these mistakes can be translated: an exception beyond them is a bug of the translation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from clusters.manifests.translation.translated import Refusal
from scheduling.manifest import FieldReader, MistakeReason, ValidationReport
from scheduling.manifest.field_reader import INT32_MIN
from scheduling.model.quantity import InvalidQuantity, parse_amount

_CLAIMS: Final = ("capability", "deserved")


def without_nulls(value: Any) -> Any:
    """Return a copy without the fields that are null: Kubernetes reads them as absent."""
    if isinstance(value, Mapping):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def job_type_mistakes(job: Mapping[str, Any]) -> list[Refusal]:
    """Return the fields of a Job that are missing or of another type."""
    report = ValidationReport()
    reader = FieldReader(report, "", job)
    _check_metadata(reader)
    _check_job_spec(reader.required_fields("spec"))
    return [*_refusals(report)]


def queue_type_mistakes(queue: Mapping[str, Any]) -> list[Refusal]:
    """Return the fields of a Queue that are missing or of another type."""
    report = ValidationReport()
    reader = FieldReader(report, "", queue)
    _check_metadata(reader)
    if status := reader.fields("status"):
        status.text("state")
    if spec := reader.fields("spec"):
        _check_queue_spec(spec)
    return [*_refusals(report)]


def pod_group_type_mistakes(group: Mapping[str, Any]) -> list[Refusal]:
    """Return the fields of a PodGroup that are missing or of another type."""
    report = ValidationReport()
    reader = FieldReader(report, "", group)
    _check_metadata(reader)
    if spec := reader.fields("spec"):
        _check_integers(spec, "minMember")
        _check_texts(spec, "queue", "priorityClassName")
    return [*_refusals(report)]


def flow_type_mistakes(flow: Mapping[str, Any]) -> list[Refusal]:
    """Return the fields of a JobFlow that are missing or of another type. A generated name would be in the names of its
    jobs, and differ at each apply."""
    report = ValidationReport()
    reader = FieldReader(report, "", flow)
    metadata = reader.required_fields("metadata")
    _check_texts(metadata, "namespace")
    metadata.text("name", required=True)
    spec = reader.required_fields("spec")
    _check_texts(spec, "jobRetainPolicy")
    for item in spec.items("flows"):
        _check_flow(item)
    return [*_refusals(report)]


def template_type_mistakes(template: Mapping[str, Any]) -> list[Refusal]:
    """Return the fields of a JobTemplate that are missing or of another type."""
    report = ValidationReport()
    reader = FieldReader(report, "", template)
    _check_metadata(reader)
    _check_job_spec(reader.required_fields("spec"))
    return [*_refusals(report)]


def can_join_a_group(pod: Mapping[str, Any]) -> bool:
    """Return whether a pod has the fields that a group sets. If not, the reader of pods reports the mistake."""
    report = ValidationReport()
    reader = FieldReader(report, "", pod)
    metadata = reader.required_fields("metadata")
    for name in ("labels", "annotations"):
        metadata.mapping(name)
    reader.required_fields("spec")
    return not report.errors


def _refusals(report: ValidationReport) -> Iterator[Refusal]:
    for error in report.errors:
        yield Refusal(error.path, error.value, error.rule, error.remedy, MistakeReason(error.reason))


def _check_metadata(reader: FieldReader) -> None:
    metadata = reader.required_fields("metadata")
    _check_texts(metadata, "namespace")
    for name in ("labels", "annotations"):
        metadata.mapping(name)
    generated = metadata.text("generateName")
    metadata.text("name", required=not generated and reader.has("metadata"))


def _check_job_spec(spec: FieldReader) -> None:
    _check_integers(spec, "minAvailable", "maxRetry", "minSuccess", "ttlSecondsAfterFinished")
    _check_texts(spec, "queue", "priorityClassName", "schedulerName")
    _check_policies(spec)
    for volume in spec.items("volumes"):
        volume.text("mountPath", required=True)
        volume.text("volumeClaimName")
    if plugins := spec.fields("plugins"):
        for name in plugins.content:
            plugins.texts(name, unique=False)
    for task in spec.items("tasks"):
        _check_task(task)


def _check_flow(flow: FieldReader) -> None:
    flow.text("name", required=True)
    if depends_on := flow.fields("dependsOn"):
        depends_on.texts("targets", unique=False)
        if probe := depends_on.fields("probe"):
            for name in ("httpGetList", "tcpSocketList", "taskStatusList"):
                probe.items(name)
    if (patch := flow.fields("patch")) and (spec := patch.fields("jobSpec")):
        _check_job_spec(spec)


def _check_task(task: FieldReader) -> None:
    _check_texts(task, "name")
    _check_integers(task, "replicas", "minAvailable", "maxRetry")
    _check_policies(task)
    if depends_on := task.fields("dependsOn"):
        depends_on.texts("name", unique=False)
        depends_on.text("iteration")
    if partitions := task.fields("partitionPolicy"):
        _check_integers(partitions, "totalPartitions", "partitionSize", "minPartitions")
    if template := task.fields("template"):
        _check_template(template)


def _check_policies(holder: FieldReader) -> None:
    for policy in holder.items("policies"):
        _check_texts(policy, "action", "event", "timeout")
        policy.texts("events", unique=False)
        _check_integers(policy, "exitCode")


def _check_template(template: FieldReader) -> None:
    template.mapping("metadata")
    spec = template.fields("spec")
    if spec is None:
        return
    spec.sequence("volumes")
    for container in [*spec.items("initContainers"), *spec.items("containers")]:
        container.sequence("volumeMounts")
        for variable in container.items("env"):
            variable.text("name")
        container.fields("resources")  # the reader of pods says what is wrong with amounts


def _check_queue_spec(spec: FieldReader) -> None:
    _check_integers(spec, "weight", "priority")
    _check_texts(spec, "parent", "type", "dequeueStrategy")
    spec.boolean("reclaimable")
    for claim in _CLAIMS:
        _check_amounts(spec, claim)
    if guarantee := spec.fields("guarantee"):
        _check_amounts(guarantee, "resource")


def _check_integers(reader: FieldReader, *names: str) -> None:
    for name in names:
        reader.optional_integer(name, minimum=INT32_MIN)


def _check_texts(reader: FieldReader, *names: str) -> None:
    for name in names:
        reader.text(name)


def _check_amounts(reader: FieldReader, key: str) -> None:
    for name, value in reader.mapping(key).items():
        try:
            if isinstance(value, bool) or not isinstance(value, str | int | float):
                raise InvalidQuantity("must be a quantity, like 500m, 2 or 10Gi")
            parse_amount(name, value)
        except InvalidQuantity as mistake:
            reader.report.error(f"{reader.at(key)}[{name}]", value, str(mistake))
