"""ProvisioningRequestConfig: the parameters of an admission check that requests nodes from an autoscaler."""

from enum import StrEnum
from typing import Any, Final

from kinds import openapi
from kinds.declaration import Field, Kind
from kinds.field_types import Choice, Structure, Text, TextMap
from queues.models import ProvisioningRequestConfig
from scheduling.manifest import FieldReader
from scheduling.manifest.syntax import dns_subdomain, qualified_name

_MAX_PARAMETERS: Final = 100
_MAX_VALUE: Final = 255
_MAX_RESOURCES: Final = 100
_MAX_SELECTORS: Final = 8
RETRY_DEFAULTS: Final = {"backoffLimitCount": 3, "backoffBaseSeconds": 60, "backoffMaxSeconds": 1800}


class MergePolicy(StrEnum):
    """The rule by which pod sets are merged into one entry of a request."""

    IDENTICAL_POD_TEMPLATES = "IdenticalPodTemplates"
    IDENTICAL_WORKLOAD_SCHEDULING_REQUIREMENTS = "IdenticalWorkloadSchedulingRequirements"


def _parameter(value: str) -> str:
    return f"must be at most {_MAX_VALUE} characters long" if len(value) > _MAX_VALUE else ""


def _read_resources(holder: FieldReader, key: str) -> list[str]:
    found: list[str] = []
    for name in holder.sequence(key, max_items=_MAX_RESOURCES):
        broken = qualified_name(name) if isinstance(name, str) else "must be a string"
        if broken:
            holder.error(key, f"{name!r}: {broken}")
        else:
            found.append(name)
    return found


def _read_retry(holder: FieldReader, key: str) -> dict[str, int]:
    fields = holder.fields(key)
    if fields is None:
        return {}
    found = {name: fields.optional_integer(name, minimum=0) for name in RETRY_DEFAULTS}
    fields.close()
    return {name: value for name, value in found.items() if value is not None}


def _read_updates(holder: FieldReader, key: str) -> dict[str, Any]:
    fields = holder.fields(key)
    if fields is None:
        return {}
    selectors: list[dict[str, str]] = []
    for index, content in enumerate(fields.sequence("nodeSelector", max_items=_MAX_SELECTORS)):
        item = FieldReader(
            fields.report, f"{fields.at('nodeSelector')}[{index}]", content if isinstance(content, dict) else {}
        )
        selectors.append(
            {
                "key": item.text("key", required=True, syntax=qualified_name),
                "valueFromProvisioningClassDetail": item.text("valueFromProvisioningClassDetail", required=True),
            }
        )
        item.close()
    fields.close()
    return {"nodeSelector": selectors} if selectors else {}


_RETRY_HELP: Final = {
    "backoffLimitCount": "How often a failed request is created again.",
    "backoffBaseSeconds": "The first pause, in seconds; each further pause is twice as long.",
    "backoffMaxSeconds": "The longest pause, in seconds.",
}
_RETRY_SCHEMA: Final = openapi.tree(
    {name: openapi.integer(_RETRY_HELP[name], minimum=0, default=initial) for name, initial in RETRY_DEFAULTS.items()}
)
_UPDATES_SCHEMA: Final = openapi.tree(
    {
        "nodeSelector": openapi.listing(
            openapi.tree(
                {
                    "key": openapi.text("The node label that pods select."),
                    "valueFromProvisioningClassDetail": openapi.text("The detail of the request that has the value."),
                },
                ("key", "valueFromProvisioningClassDetail"),
            ),
            "Node selectors whose values are in the details of the provisioned request.",
        )
    }
)

PROVISIONING_REQUEST_CONFIG: Final = Kind(
    "ProvisioningRequestConfig",
    ("kueue.x-k8s.io/v1beta2", "kueue.x-k8s.io/v1beta1"),
    "provisioning-request-configs",
    ("prc",),
    description="A ProvisioningRequestConfig.",
    model=ProvisioningRequestConfig,
    spec_required=True,
    fields=(
        Field(
            "provisioning_class_name",
            "spec.provisioningClassName",
            Text(syntax=dns_subdomain),
            required=True,
            always=True,
            core=None,
            help="The class of ProvisioningRequests, which determines the provisioner.",
        ),
        Field(
            "parameters",
            "spec.parameters",
            TextMap(_MAX_PARAMETERS, None, _parameter),
            core=None,
            help="Parameters that are passed on to the provisioner.",
        ),
        Field(
            "managed_resources",
            "spec.managedResources",
            Structure(_read_resources, list, of_texts=True, shape=openapi.listing(openapi.text())),
            core=None,
            help="Pods that request none of these resources need no ProvisioningRequest; empty: all pods need one.",
        ),
        Field(
            "retry_strategy",
            "spec.retryStrategy",
            Structure(_read_retry, dict, shape=_RETRY_SCHEMA),
            core=None,
            help="How often, and after which backoff, a failed request is created again.",
        ),
        Field(
            "pod_set_updates",
            "spec.podSetUpdates",
            Structure(_read_updates, dict, shape=_UPDATES_SCHEMA),
            core=None,
            help="Node selectors that pods get from the provisioned request.",
        ),
        Field(
            "pod_set_merge_policy",
            "spec.podSetMergePolicy",
            Choice(MergePolicy),
            core=None,
            help="Whether equal or similar pod sets share one entry of the request; empty: each pod set has its own.",
        ),
    ),
)
