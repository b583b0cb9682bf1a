"""ResourceFlavor (the nodes behind a quota), Topology (the levels that group these nodes) and AdmissionCheck."""

from typing import Final

from kinds import openapi
from kinds.declaration import Field, Kind, Place, Reading
from kinds.field_types import Boolean, Structure, Text, TextMap
from queues.kinds import users
from queues.kinds.tolerations import TAINTS_SCHEMA, TOLERATIONS_SCHEMA
from queues.models import AdmissionCheck, ResourceFlavor, Topology
from scheduling.manifest import FieldReader, MistakeReason
from scheduling.manifest.syntax import dns_subdomain, label_value, qualified_name
from scheduling.manifest.taints import read_taints, read_tolerations
from scheduling.model import admission_check, resource_flavor, topology
from scheduling.model.selectors import HOSTNAME_LABEL, Taint, Toleration

_MAX: Final = 8
_MAX_LEVELS: Final = 16
_MAX_LEVEL_LENGTH: Final = 316
_MAX_CONTROLLER_LENGTH: Final = 253


def _check_topology(reading: Reading) -> None:
    if reading.values["topology_name"] and not reading.values["node_labels"]:
        reading.error(
            "topology_name",
            "needs at least one node label",
            "Add labels that select the nodes of the topology.",
        )


RESOURCE_FLAVOR: Final = Kind(
    "ResourceFlavor",
    ("kueue.x-k8s.io/v1beta2", "kueue.x-k8s.io/v1beta1", "kueue.x-k8s.io/v1alpha2"),
    "resource-flavors",
    ("rf", "flavor"),
    description="A ResourceFlavor: a set of nodes with quota of its own.",
    model=ResourceFlavor,
    fields=(
        Field(
            "node_labels",
            "spec.nodeLabels",
            TextMap(_MAX, qualified_name, label_value),
            older={"v1alpha2": Place("nodeSelector")},
            help="Labels that select the flavor's nodes; pods get them as a node selector.",
        ),
        Field(
            "node_taints",
            "spec.nodeTaints",
            Structure(
                lambda holder, key: read_taints(holder, key, _MAX),
                list,
                lambda taints: tuple(Taint.from_manifest(taint) for taint in taints),
                shape=TAINTS_SCHEMA,
            ),
            older={"v1alpha2": Place("taints")},
            help="Taints of the flavor's nodes: only workloads that tolerate them can use the flavor.",
        ),
        Field(
            "tolerations",
            "spec.tolerations",
            Structure(
                lambda holder, key: read_tolerations(holder, key, _MAX),
                list,
                lambda tolerations: tuple(Toleration.from_manifest(toleration) for toleration in tolerations),
                shape=TOLERATIONS_SCHEMA,
            ),
            older={"v1alpha2": None},
            help="Tolerations that are added to pods in this flavor.",
        ),
        Field(
            "topology_name",
            "spec.topologyName",
            Text(syntax=dns_subdomain),
            json="topology",
            core="topology_name",
            older={"v1alpha2": None},
            frozen=lambda old, new: bool(old) and old != new,
            help="The Topology of the flavor's nodes; pods in the flavor are placed in its domains.",
        ),
        Field(
            "quota_only",
            "",
            Boolean(),
            annotation="kueueweb.io/quota-only",
            help="Beyond Kueue: only quota decides; pods without devices are not placed on particular nodes.",
        ),
    ),
    check=_check_topology,
    users=users.of_flavor,
    is_used=users.flavor_is_used,
    core=lambda row, known: resource_flavor.ResourceFlavor(row.name, **known),
)


def _read_levels(holder: FieldReader, key: str) -> list[str]:
    """1 to 16 different node labels, the host name only as the last. Our JSON lists the labels themselves."""
    found: list[str] = []
    listed = [
        item if isinstance(item, dict) else {"nodeLabel": item}
        for item in holder.sequence(key, min_items=1, max_items=_MAX_LEVELS)
    ]
    for index, content in enumerate(listed):
        item = FieldReader(holder.report, f"{holder.at(key)}[{index}]", content)
        label = item.text("nodeLabel", required=True, max_length=_MAX_LEVEL_LENGTH, syntax=qualified_name)
        item.close()
        if label and label in found:
            item.error("nodeLabel", "Duplicate value", "Remove one.", MistakeReason.DUPLICATE)
        if label == HOSTNAME_LABEL and index < len(listed) - 1:
            item.error("nodeLabel", f"{HOSTNAME_LABEL} may only be the last level", "Move it to the end.")
        found.append(label)
    return found


def _write_levels(levels: list[str]) -> list[dict[str, str]]:
    return [{"nodeLabel": level} for level in levels]


def _levels_are_frozen(old: list[str], new: list[str]) -> bool:
    """Levels may change only while the host name is the last of them, before and after."""
    by_host = old[-1:] == [HOSTNAME_LABEL] and new[-1:] == [HOSTNAME_LABEL]
    return old != new and not by_host


_LEVELS_SCHEMA: Final = openapi.listing(
    openapi.tree({"nodeLabel": openapi.text("The label whose values are the domains of the level.")}, ("nodeLabel",))
)

TOPOLOGY: Final = Kind(
    "Topology",
    ("kueue.x-k8s.io/v1beta2", "kueue.x-k8s.io/v1beta1", "kueue.x-k8s.io/v1alpha1"),
    "topologies",
    ("topo",),
    description="A Topology: the levels of blocks, racks and hosts within which pods are placed together.",
    model=Topology,
    spec_required=True,
    fields=(
        Field(
            "levels",
            "spec.levels",
            Structure(_read_levels, list, tuple, _write_levels, of_texts=True, shape=_LEVELS_SCHEMA),
            required=True,
            always=True,
            frozen=_levels_are_frozen,
            help="Node labels, widest level first.",
        ),
    ),
    users=users.of_topology,
    is_used=users.topology_is_used,
    core=lambda row, known: topology.Topology(row.name, known["levels"]),
)


def _read_parameters(holder: FieldReader, key: str) -> dict[str, str]:
    fields = holder.fields(key)
    if fields is None:
        return {}
    parameters = {name: fields.text(name, required=True) for name in ("apiGroup", "kind", "name")}
    fields.close()
    return parameters


_PARAMETERS_SCHEMA: Final = openapi.tree(
    {
        "apiGroup": openapi.text("The API group of the object."),
        "kind": openapi.text("The kind of the object."),
        "name": openapi.text("The name of the object."),
    },
    ("apiGroup", "kind", "name"),
)

ADMISSION_CHECK: Final = Kind(
    "AdmissionCheck",
    ("kueue.x-k8s.io/v1beta2", "kueue.x-k8s.io/v1beta1"),
    "admission-checks",
    ("ac",),
    description="An AdmissionCheck: a condition that a controller must set before a workload is admitted.",
    model=AdmissionCheck,
    spec_required=True,
    fields=(
        Field(
            "controller_name",
            "spec.controllerName",
            Text(max_length=_MAX_CONTROLLER_LENGTH),
            required=True,
            always=True,
            frozen=True,
            help="The controller that answers the check.",
        ),
        Field(
            "parameters",
            "spec.parameters",
            Structure(_read_parameters, dict, shape=_PARAMETERS_SCHEMA),
            core=None,
            help="A reference to the object with the controller's parameters.",
        ),
        Field("active", "", Boolean(), help="Whether the controller is ready to answer the check."),
    ),
    dropped={"v1beta1": ("spec.retryDelayMinutes",)},
    users=users.of_check,
    is_used=users.check_is_used,
    core=lambda row, known: admission_check.AdmissionCheck(row.name, **known),
)
