"""`integrations.frameworks` of Kueue's Configuration: the kinds of jobs that are managed, by Kueue's names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from scheduling.manifest import FieldReader, MistakeReason
from scheduling.manifest.field_reader import suggestion

POD: Final = "pod"
_OF_GATED_PODS: Final = frozenset({"deployment", "leaderworkerset.x-k8s.io/leaderworkerset", "statefulset"})
"""Kinds whose pods are gated instead of the job. Without `pod` nothing would gate them."""
FRAMEWORKS: Final = _OF_GATED_PODS | frozenset(
    {
        POD,
        "batch/job",
        "jobset.x-k8s.io/jobset",
        "kubeflow.org/jaxjob",
        "kubeflow.org/mpijob",
        "kubeflow.org/paddlejob",
        "kubeflow.org/pytorchjob",
        "kubeflow.org/tfjob",
        "kubeflow.org/xgboostjob",
        "ray.io/raycluster",
        "ray.io/rayjob",
        "ray.io/rayservice",
        "sparkoperator.k8s.io/sparkapplication",
        "trainer.kubeflow.org/trainjob",
        "workload.codeflare.dev/appwrapper",
    }
)
_NAMELESS_GROUPS: Final = ("", "apps")
"""Groups that Kueue leaves out of the names."""


def framework_name(api_version: str, kind: str) -> str:
    """`batch/v1` and `Job` -> `batch/job`."""
    group, name = api_version.rpartition("/")[0], kind.lower()
    return name if group in _NAMELESS_GROUPS else f"{group}/{name}"


def is_enabled(configuration: Mapping[str, Any], api_version: str, kind: str) -> bool:
    """Whether jobs of a kind are managed. Without a list all of them are, and what is no framework always is."""
    frameworks = (configuration.get("integrations") or {}).get("frameworks")
    name = framework_name(api_version, kind)
    return not frameworks or name not in FRAMEWORKS or name in frameworks


def disabled_mistake(configuration: Mapping[str, Any], api_version: str, kind: str) -> tuple[str, str]:
    """The rule that a job breaks whose kind is not managed, and the remedy; empty where the kind is."""
    if is_enabled(configuration, api_version, kind):
        return "", ""
    name = framework_name(api_version, kind)
    return f'Unsupported value: integrations.frameworks of the Configuration does not name "{name}"', "Add it there."


def disabled_frameworks(configuration: Mapping[str, Any]) -> list[str]:
    """Those that the list leaves out."""
    frameworks = (configuration.get("integrations") or {}).get("frameworks")
    return sorted(FRAMEWORKS - set(frameworks)) if frameworks else []


def read_frameworks(block: FieldReader) -> None:
    """Notes what is wrong with the list."""
    names = block.texts("frameworks") or []
    for name in names:
        if name not in FRAMEWORKS:
            remedy = suggestion(name, sorted(FRAMEWORKS))
            block.error("frameworks", f'Unsupported value: "{name}"', remedy, MistakeReason.NOT_SUPPORTED)
        elif name in _OF_GATED_PODS and POD not in names:
            rule = f'"{name}" requires "{POD}" as well, which gates its pods'
            block.error("frameworks", rule, f'Add "{POD}".', MistakeReason.REQUIRED)
