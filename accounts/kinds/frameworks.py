"""`integrations.frameworks` of Kueue's Configuration: the kinds of jobs that are managed, by Kueue's names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from accounts.kinds.feature_gates import SPARK_APPLICATIONS
from scheduling.manifest import FieldReader, MistakeReason
from scheduling.manifest.field_reader import suggestion

POD: Final = "pod"
SPARK: Final = "sparkoperator.k8s.io/sparkapplication"
FRAMEWORKS: Final[set[str]] = set()
"""The names of all kinds of jobs that get workloads. `clusters` registers them at the start, from its own list."""
_OF_GATED_PODS: Final[set[str]] = set()
"""Kinds whose pods are gated instead of the job: each of them enables `pod` too, which gates them."""
_NAMELESS_GROUPS: Final = ("", "apps")
"""Groups that Kueue leaves out of the names."""


def register_framework(api_version: str, kind: str, *, gates_pods: bool) -> None:
    """Make a kind of job known to `integrations.frameworks`. `gates_pods`: its pods are gated instead of the job."""
    name = framework_name(api_version, kind)
    FRAMEWORKS.add(name)
    if gates_pods:
        _OF_GATED_PODS.add(name)


def framework_name(api_version: str, kind: str) -> str:
    """`batch/v1` and `Job` -> `batch/job`."""
    group, name = api_version.rpartition("/")[0], kind.lower()
    return name if group in _NAMELESS_GROUPS else f"{group}/{name}"


def is_enabled(configuration: Mapping[str, Any], api_version: str, kind: str) -> bool:
    """Return whether jobs of a kind are managed. Without a list every kind is, and a kind that is not a framework
    always is."""
    name, enabled = framework_name(api_version, kind), enabled_frameworks(configuration)
    return not enabled or name not in FRAMEWORKS or name in enabled


def enabled_frameworks(configuration: Mapping[str, Any]) -> frozenset[str]:
    """Return the frameworks that a Configuration lists, and `pod` if one of them needs it; empty means all
    frameworks."""
    listed = frozenset((configuration.get("integrations") or {}).get("frameworks") or ())
    return listed | {POD} if listed & _OF_GATED_PODS else listed


def external_kinds(configuration: Mapping[str, Any]) -> frozenset[tuple[str, str]]:
    """Return the kinds, by apiVersion and kind, whose jobs other controllers manage with Workloads of their own."""
    listed = (configuration.get("integrations") or {}).get("externalFrameworks") or ()
    return frozenset(kind for name in listed if (kind := _external_kind(name)) is not None)


def _external_kind(name: str) -> tuple[str, str] | None:
    """`Job.v1.example.com` -> `example.com/v1` and `Job`."""
    kind, _, rest = name.partition(".")
    version, _, group = rest.partition(".")
    return (f"{group}/{version}", kind) if kind and version and group else None


def disabled_mistake(configuration: Mapping[str, Any], api_version: str, kind: str) -> tuple[str, str]:
    """Return the error and the remedy for a job whose kind is not managed; empty if the kind is managed."""
    if is_enabled(configuration, api_version, kind):
        return "", ""
    name = framework_name(api_version, kind)
    return f'Unsupported value: integrations.frameworks of the Configuration does not name "{name}"', "Add it there."


def disabled_frameworks(configuration: Mapping[str, Any]) -> list[str]:
    """Return the frameworks that the list leaves out."""
    enabled = enabled_frameworks(configuration)
    return sorted(FRAMEWORKS - enabled) if enabled else []


def read_frameworks(block: FieldReader, *, with_spark: bool) -> None:
    """Validate the lists. `with_spark`: the gate SparkApplicationIntegration is on."""
    for name in block.texts("frameworks"):
        if name not in FRAMEWORKS:
            remedy = suggestion(name, sorted(FRAMEWORKS))
            block.error("frameworks", f'Unsupported value: "{name}"', remedy, MistakeReason.NOT_SUPPORTED)
        elif name == SPARK and not with_spark:
            rule = f'"{name}" requires the feature gate {SPARK_APPLICATIONS}, which is off'
            block.error("frameworks", rule, f"Set featureGates.{SPARK_APPLICATIONS} to true.", MistakeReason.REQUIRED)
    known = {name.lower() for name in FRAMEWORKS}
    for name in block.texts("externalFrameworks"):
        kind = _external_kind(name)
        if kind is None:
            block.error(
                "externalFrameworks", f'"{name}" must be Kind.version.group.com', "Write it like Foo.v1.example.com."
            )
        elif framework_name(*kind) in known:
            rule = f'Duplicate value: "{name}" is managed here, by frameworks'
            block.error("externalFrameworks", rule, "Remove it from one of the two.", MistakeReason.DUPLICATE)
