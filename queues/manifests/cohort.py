"""Cohort."""

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from queues.manifests.fair_sharing import DEFAULT_WEIGHT, read_weight, write_weight
from queues.manifests.protection import read_protection, without_columns, write_columns
from queues.manifests.resource_groups import ResourceGroupSpec, read_resource_groups, write_resource_groups
from scheduling.manifest import Fields, ObjectMeta, read_metadata, write_metadata
from scheduling.manifest.syntax import dns_subdomain


@dataclass(frozen=True, slots=True)
class CohortSpec:
    """Columns of Cohort, and its quotas."""

    meta: ObjectMeta
    parent_name: str = ""
    fair_sharing_weight: Decimal = DEFAULT_WEIGHT
    preemption_protection: dict[str, int] = field(default_factory=dict)
    resource_groups: tuple[ResourceGroupSpec, ...] = ()


def read_cohort(top: Fields, version: str) -> CohortSpec:
    """Read a Cohort: lending may exceed the nominal quota."""
    top.ignore("status")
    meta = read_metadata(top, namespaced=False)
    protection = read_protection(top, meta)
    spec = top.fields("spec")
    if spec is None:
        return CohortSpec(without_columns(meta), preemption_protection=protection)
    parent = spec.text("parent" if version == "v1alpha1" else "parentName", syntax=dns_subdomain)
    groups = read_resource_groups(spec, in_cohort=bool(parent), lending_within_nominal=False)
    cohort = CohortSpec(without_columns(meta), parent, read_weight(spec), protection, groups)
    spec.close()
    return cohort


def write_cohort(spec: CohortSpec) -> dict[str, Any]:
    """The manifest of a Cohort."""
    body: dict[str, Any] = {}
    if spec.parent_name:
        body["parentName"] = spec.parent_name
    if spec.resource_groups:
        body["resourceGroups"] = write_resource_groups(spec.resource_groups)
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Cohort",
        "metadata": write_metadata(write_columns(spec.meta, protection=spec.preemption_protection)),
        "spec": {**body, **write_weight(spec.fair_sharing_weight)},
    }
