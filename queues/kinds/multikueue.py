"""MultiKueueConfig and MultiKueueCluster: to which clusters a ClusterQueue's workloads go."""

from enum import StrEnum
from typing import Final

from kinds import openapi
from kinds.declaration import Field, Kind, Place, Reading
from kinds.field_types import Choice, Structure, Text
from queues.models import MultiKueueCluster, MultiKueueConfig
from scheduling.manifest import FieldReader, MistakeReason

_VERSIONS: Final = ("kueue.x-k8s.io/v1beta2", "kueue.x-k8s.io/v1beta1")
QUOTA_AUTOMATION: Final = "MultiKueueManagerQuotaAutomation"
"""The condition of a ClusterQueue that reports whether its quotas follow those of the workers."""

_MAX_CLUSTERS: Final = 20
_MAX_NAME: Final = 256


class QuotaManagement(StrEnum):
    """The source of the quotas of the manager's ClusterQueues."""

    MANUAL = "Manual"
    """From their author."""
    AUTOMATED = "Automated"
    """They are the sums of the workers' quotas (Kueue's gate MultiKueueManagerQuotaAutomation)."""


class LocationType(StrEnum):
    """The place of a kubeconfig."""

    OBJECT = "Secret"
    """In a Secret of the manager, under the key `kubeconfig`."""
    FILE = "Path"
    """In a file."""


_LOCATIONS: Final = [place.value for place in LocationType]


def _short(value: str) -> str:
    return f"must be at most {_MAX_NAME} characters long" if len(value) > _MAX_NAME else ""


def _read_clusters(holder: FieldReader, key: str) -> list[str]:
    return holder.texts(key, min_items=1, max_items=_MAX_CLUSTERS, syntax=_short)


def _read_kube_config(holder: FieldReader, key: str) -> dict[str, str]:
    fields = holder.fields(key)
    if fields is None:
        return {}
    found = {
        "location": fields.text("location", required=True, max_length=_MAX_NAME),
        "locationType": fields.choice("locationType", LocationType.OBJECT).value,
    }
    fields.close()
    return found


def _read_nothing(holder: FieldReader, key: str) -> list[dict[str, str]]:
    """Read nothing: only the controller writes this field."""
    return []


def _check_source(reading: Reading) -> None:
    """Exactly one way to the cluster."""
    kube_config, profile = reading.values["kube_config"], reading.values["cluster_profile"]
    if bool(kube_config) == bool(profile):
        field = "cluster_profile" if kube_config else "kube_config"
        rule = "exactly one of the fields in [kubeConfig clusterProfileRef] must be set"
        reason = MistakeReason.FORBIDDEN if kube_config else MistakeReason.REQUIRED
        reading.error(field, rule, "Set a kubeconfig, or a cluster that is registered here.", reason)


MULTIKUEUE_CONFIG: Final = Kind(
    "MultiKueueConfig",
    _VERSIONS,
    "multikueue-configs",
    ("mkconf",),
    description="A MultiKueueConfig.",
    model=MultiKueueConfig,
    spec_required=True,
    fields=(
        Field(
            "clusters",
            "spec.clusters",
            Structure(_read_clusters, list, of_texts=True, shape=openapi.listing(openapi.text())),
            required=True,
            always=True,
            core=None,
            help="The names of MultiKueueClusters, in order of preference.",
        ),
        Field(
            "quota_management",
            "spec.quotaManagement",
            Choice(QuotaManagement, QuotaManagement.MANUAL),
            core=None,
            older={"v1beta1": None},
            help="Automated: the quotas of the manager's ClusterQueues are the sums of the workers' quotas.",
        ),
    ),
)

MULTIKUEUE_CLUSTER: Final = Kind(
    "MultiKueueCluster",
    _VERSIONS,
    "multikueue-clusters",
    ("mkc",),
    description="A MultiKueueCluster.",
    model=MultiKueueCluster,
    parts={
        "spec.clusterSource": "The way to the worker cluster: exactly one of the fields below.",
        **dict.fromkeys(("spec.clusterSource.clusterProfileRef", "spec.clusterProfileRef"), "A registered cluster."),
    },
    spec_required=True,
    fields=(
        Field(
            "kube_config",
            "spec.clusterSource.kubeConfig",
            Structure(
                _read_kube_config,
                dict,
                shape=openapi.tree(
                    {
                        "location": openapi.text("The name of the Secret, or the path of the file."),
                        "locationType": openapi.text("Where the kubeconfig is.", enum=_LOCATIONS),
                    },
                    ("location",),
                ),
            ),
            core=None,
            older={"v1beta1": Place("spec.kubeConfig")},
            help="{location, locationType}: a Secret of the manager cluster, or a file of the push workers.",
        ),
        Field(
            "cluster_profile",
            "spec.clusterSource.clusterProfileRef.name",
            Text(max_length=_MAX_NAME),
            core=None,
            older={"v1beta1": Place("spec.clusterProfileRef.name")},
            help="A cluster that is registered here; it must accept this cluster's workloads.",
        ),
        Field(
            "conditions", "", Structure(_read_nothing, list), core=None, help="Whether the worker cluster is connected."
        ),
    ),
    check=_check_source,
)
