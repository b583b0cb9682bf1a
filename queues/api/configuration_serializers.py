"""The shapes of configuration objects for the OpenAPI document, derived from the declarations of their kinds."""

from functools import cache, singledispatch
from typing import Any, Final

from rest_framework import serializers

from accounts.api.fields import Text as TextField
from accounts.api.fields import TrueOrFalse
from accounts.models import ClusterMode, DeviceBinding
from accounts.services.cluster_settings import telemetry_url_mistake
from kinds.declaration import Field, Group, Kind
from kinds.field_types import (
    Boolean,
    Choice,
    FieldType,
    Integer,
    Moment,
    Quantities,
    Structure,
    Text,
    TextMap,
    Weight,
)
from queues.api.serializers import ConditionSerializer
from queues.kinds import KINDS
from queues.kinds.admission_checks import AdmissionChecks
from queues.kinds.multifactor import MultifactorWeights
from queues.kinds.node_quotas import NodeQuotas
from queues.kinds.quotas import ResourceGroups
from queues.kinds.user_limits import LimitsByUser
from scheduling.model.vocabulary import FungibilityPolicy, PlacementScope

Shape = serializers.Serializer[Any]

FUNGIBILITY_POLICIES: Final = [policy.value for policy in FungibilityPolicy]


def _texts(**options: Any) -> serializers.DictField:
    return serializers.DictField(child=serializers.CharField(allow_blank=True), **options)


class ObjectSerializer(Shape):
    """The fields of every configuration object."""

    uid = serializers.UUIDField(read_only=True)
    cluster = serializers.CharField(read_only=True, help_text="Empty for a role that applies to all clusters.")
    name = serializers.CharField(read_only=True)
    labels = _texts(required=False)
    annotations = _texts(required=False)
    generation = serializers.IntegerField(read_only=True)
    created_at = serializers.DateTimeField(read_only=True)
    deletion_requested_at = serializers.DateTimeField(
        read_only=True,
        allow_null=True,
        help_text="When its deletion was requested; it is deleted once nothing uses it.",
    )


class QuotaSerializer(Shape):
    """The quota of a resource in a flavor; amounts are Kubernetes quantities."""

    name = serializers.CharField()
    nominal_quota = serializers.CharField()
    borrowing_limit = serializers.CharField(allow_null=True, required=False, help_text="null: no limit.")
    lending_limit = serializers.CharField(allow_null=True, required=False, help_text="null: the whole nominal quota.")


class FlavorQuotasSerializer(Shape):
    """The quotas in a flavor."""

    name = serializers.CharField()
    resources = QuotaSerializer(many=True)


class ResourceGroupSerializer(Shape):
    """Resources that share one flavor, and the flavors in the order in which they are tried."""

    covered_resources = serializers.ListField(child=serializers.CharField())
    flavors = FlavorQuotasSerializer(many=True)


class AdmissionCheckRuleSerializer(Shape):
    """An admission check and the flavors that it applies to; empty: all flavors."""

    name = serializers.CharField()
    on_flavors = serializers.ListField(child=serializers.CharField(), required=False)


class NodeQuotaSerializer(Shape):
    """A quota that is computed from the nodes of its flavor: `share` of what unmanaged pods leave, minus `headroom`."""

    flavor = serializers.CharField()
    resource = serializers.CharField()
    share = serializers.CharField(help_text="A percentage: `50%`, `33.33%`.")
    headroom = serializers.CharField(required=False, help_text="A Kubernetes quantity; 0 by default.")


class UserLimitSerializer(Shape):
    """The maximum that each of these users, and each of these groups as a whole, may hold at the same time in the
    queue, or in all queues below the cohort."""

    users = serializers.ListField(
        child=serializers.CharField(), help_text="Names of users; `*` is each user whom no limit of this object names."
    )
    groups = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        help_text="Names of groups; `*` is all groups together that no limit of this object names.",
    )
    workloads = serializers.IntegerField(required=False, min_value=1, help_text="The number of workloads with quota.")
    resources = serializers.DictField(
        child=serializers.CharField(), required=False, help_text="Kubernetes quantities by resource, over all flavors."
    )


class PriorityWeightsSerializer(Shape):
    """The weights of the factors of a multifactor priority. Factors are between 0 and 1, unless they are `unscaled`."""

    age = serializers.IntegerField(
        required=False, min_value=0, help_text="Weight of the waiting time, relative to max_age_seconds."
    )
    fair_share = serializers.IntegerField(
        required=False, min_value=0, help_text="Weight of the Fair Tree factor, by usage and weights."
    )
    job_size = serializers.IntegerField(
        required=False, min_value=0, help_text="Weight of its share of the nodes and CPUs."
    )
    queue = serializers.IntegerField(
        required=False, min_value=0, help_text="Weight of the queue_priority, relative to the highest."
    )
    resources = serializers.DictField(
        child=serializers.IntegerField(min_value=0),
        required=False,
        help_text="Weight by resource, of its share of the resource.",
    )
    max_age_seconds = serializers.IntegerField(required=False, min_value=1, help_text="7 days by default.")
    half_life_seconds = serializers.IntegerField(
        required=False,
        min_value=1,
        help_text="After this time, past use counts half in the fair share; 7 days by default.",
    )
    usage = serializers.DictField(
        child=serializers.IntegerField(min_value=0),
        required=False,
        help_text="Weight by resource in past use, per core, GiB or other unit; by default, only cores count.",
    )
    favor_small = TrueOrFalse(required=False)
    relative_to_time = TrueOrFalse(required=False, help_text="Whether the size is CPUs per minute of the time limit.")
    unscaled = serializers.ListField(child=serializers.CharField(), required=False)

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """Add the field `class`, a name that no Python attribute can have."""
        weight = serializers.IntegerField(
            required=False, min_value=0, help_text="Weight of its class's priority, relative to the highest."
        )
        return {**super().get_fields(), "class": weight}


class StatusSerializer(Shape):
    """Whether a queue is active, and how many workloads it has."""

    pending = serializers.IntegerField(read_only=True)
    reserving = serializers.IntegerField(read_only=True)
    admitted = serializers.IntegerField(read_only=True)
    conditions = ConditionSerializer(many=True, read_only=True)


@singledispatch
def _shape(type_: FieldType, **options: Any) -> serializers.Field[Any, Any, Any, Any]:
    raise TypeError(f"a {type(type_).__name__} has no shape yet: register one here")


@_shape.register
def _(type_: Text, **options: Any) -> serializers.Field[Any, Any, Any, Any]:
    return serializers.CharField(allow_blank=not options["required"], **options)


@_shape.register
def _(type_: Choice, **options: Any) -> serializers.Field[Any, Any, Any, Any]:
    if type_.initial is None:
        return serializers.CharField(allow_blank=True, **options)
    return serializers.ChoiceField([word.value for word in type_.enum], **options)


@_shape.register
def _(type_: Integer, **options: Any) -> serializers.Field[Any, Any, Any, Any]:
    if type_.minimum >= 0:
        options["min_value"] = type_.minimum
    return serializers.IntegerField(allow_null=type_.initial is None, **options)


@_shape.register
def _(type_: Moment, **options: Any) -> serializers.Field[Any, Any, Any, Any]:
    return serializers.DateTimeField(allow_null=type_.optional, **options)


@_shape.register
def _(type_: Boolean, **options: Any) -> serializers.Field[Any, Any, Any, Any]:
    return TrueOrFalse(**options)


@_shape.register(TextMap)
@_shape.register(Quantities)
def _(type_: FieldType, **options: Any) -> serializers.Field[Any, Any, Any, Any]:
    return _texts(**options)


@_shape.register
def _(type_: Weight, **options: Any) -> serializers.Field[Any, Any, Any, Any]:
    return serializers.CharField(**options)


@_shape.register
def _(type_: Structure, **options: Any) -> serializers.Field[Any, Any, Any, Any]:
    if isinstance(type_.default, list):
        child = serializers.CharField() if type_.of_texts else serializers.DictField()
        return serializers.ListField(child=child, **options)
    return serializers.DictField(allow_null=type_.default is None, **options)


@_shape.register
def _(type_: ResourceGroups, **options: Any) -> serializers.Field[Any, Any, Any, Any]:
    return ResourceGroupSerializer(many=True, **options)


@_shape.register
def _(type_: AdmissionChecks, **options: Any) -> serializers.Field[Any, Any, Any, Any]:
    return AdmissionCheckRuleSerializer(many=True, **options)


@_shape.register
def _(type_: NodeQuotas, **options: Any) -> serializers.Field[Any, Any, Any, Any]:
    return NodeQuotaSerializer(many=True, **options)


@_shape.register
def _(type_: LimitsByUser, **options: Any) -> serializers.Field[Any, Any, Any, Any]:
    return UserLimitSerializer(many=True, **options)


@_shape.register
def _(type_: MultifactorWeights, **options: Any) -> serializers.Field[Any, Any, Any, Any]:
    return PriorityWeightsSerializer(**options)


@cache
def serializer_of(name: str, *, with_status: bool = False) -> type[Shape]:
    """Return the serializer of a kind."""
    kind = KINDS[name]
    bases: tuple[type[Shape], ...] = (StatusSerializer, ObjectSerializer) if with_status else (ObjectSerializer,)
    fields: dict[str, Any] = {"__doc__": kind.description}
    if kind.namespaced:
        fields["namespace"] = serializers.CharField(read_only=True)
    fields |= _fields(kind, "")
    return type(f"{name}{'Status' if with_status else ''}Serializer", bases, fields)


def _fields(kind: Kind, outer: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in kind.fields:
        if field.json is None or not field.json_path.startswith(outer):
            continue
        key, nested, _ = field.json_path.removeprefix(outer).partition(".")
        if not nested:
            found[key] = _shape(field.type, **_options(kind, field))
        elif key not in found:
            found[key] = _group_shape(kind, f"{outer}{key}")(required=False)
    return found


def _group_shape(kind: Kind, path: str) -> type[Shape]:
    group = kind.groups[path]
    if group not in _group_shapes:
        name = "".join(word.capitalize() for word in path.rpartition(".")[2].split("_"))
        fields = {"__doc__": group.description, **_fields(kind, f"{path}.")}
        _group_shapes[group] = type(f"{name}Serializer", (Shape,), fields)
    return _group_shapes[group]


_group_shapes: dict[Group, type[Shape]] = {}
"""Shapes of groups that several kinds have in common."""


def _options(kind: Kind, field: Field) -> dict[str, Any]:
    options: dict[str, Any] = {"required": field.required}
    if field.read_only:
        options = {"read_only": True, "required": None}
    return {**options, **({"help_text": field.help} if field.help else {})}


_MODE_HELP: Final = (
    "`observe`: Kueue decides; its objects are shown, and nothing is written to the cluster. `shadow`: "
    "the same, and kueueweb's scheduler decides in parallel for comparison. `schedule`: kueueweb decides."
)


_SERVES_HELP: Final = (
    "In mode schedule: synchronize Kueue's objects between the cluster and kueueweb, and write their "
    "status to the cluster. It needs Kueue's CRDs."
)


_BINDING_HELP: Final = (
    "`bind`: kueueweb binds pods to nodes and devices, as HAMi's scheduler would. `pin`: kueueweb chooses "
    "the node and the devices, and HAMi's scheduler binds; this needs HAMi's webhook and scheduler."
)


_ACCEPTS_HELP: Final = "The names of the clusters whose MultiKueue may run workloads in this one."


_MAX_MANAGERS: Final = 1000


_MAX_NAME: Final = 253


_MAX_URLS: Final = 1000


_PLACEMENT_HELP: Final = (
    "The pods that kueueweb places on nodes: pods of workloads with devices (`devices`), in addition pods in flavors "
    "with a topology (`topology`), or all pods (`all`). The cluster's own scheduler places the others, as under "
    "Kueue."
)


_TELEMETRY_HELP: Final = (
    "Addresses of measured usage of devices and containers: Prometheus text in the format of HAMi's exporter. "
    "Credentials are shown as `***`; if `***` is sent, the stored ones are kept."
)


class ClusterSettingsSerializer(Shape):
    """The settings of a cluster that an admin may change."""

    mode = serializers.ChoiceField([mode.value for mode in ClusterMode], required=False, help_text=_MODE_HELP)
    serves_kueue_objects = TrueOrFalse(required=False, help_text=_SERVES_HELP)
    device_binding = serializers.ChoiceField(
        [binding.value for binding in DeviceBinding], required=False, help_text=_BINDING_HELP
    )

    placement = serializers.ChoiceField(
        [scope.value for scope in PlacementScope], required=False, help_text=_PLACEMENT_HELP
    )
    accepts_workloads_from = serializers.ListField(
        child=TextField(max_length=_MAX_NAME), required=False, max_length=_MAX_MANAGERS, help_text=_ACCEPTS_HELP
    )
    telemetry_urls = serializers.ListField(
        child=TextField(max_length=2048), required=False, max_length=_MAX_URLS, help_text=_TELEMETRY_HELP
    )

    def validate_telemetry_urls(self, urls: list[str]) -> list[str]:
        """Check that the addresses can be queried."""
        found = {place: telemetry_url_mistake(url) for place, url in enumerate(urls)}
        mistakes: dict[Any, list[str]] = {place: [mistake] for place, mistake in found.items() if mistake}
        if mistakes:
            raise serializers.ValidationError(mistakes)
        return urls

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Require at least one of the fields."""
        if not attrs:
            raise serializers.ValidationError(
                {
                    "mode": "Required value: give mode, serves_kueue_objects, device_binding, placement, "
                    "accepts_workloads_from or telemetry_urls."
                }
            )
        return attrs


class ClusterSerializer(Shape):
    """A cluster."""

    name = serializers.CharField()
    mode = serializers.ChoiceField([mode.value for mode in ClusterMode], help_text=_MODE_HELP)
    serves_kueue_objects = serializers.BooleanField(help_text=_SERVES_HELP)
    device_binding = serializers.ChoiceField([binding.value for binding in DeviceBinding], help_text=_BINDING_HELP)
    placement = serializers.ChoiceField([scope.value for scope in PlacementScope], help_text=_PLACEMENT_HELP)
    accepts_workloads_from = serializers.ListField(child=serializers.CharField(), help_text=_ACCEPTS_HELP)
    server_url = serializers.CharField(allow_blank=True, help_text="Empty for users without permission to see it.")
    configuration = serializers.DictField(help_text="Kueue's Configuration as applied; empty: Kueue's defaults.")
    device_plugin = serializers.DictField(
        help_text="The settings in the ConfigMaps of HAMi's device plugin; empty: HAMi's defaults."
    )
    telemetry_urls = serializers.ListField(child=serializers.CharField(), help_text=_TELEMETRY_HELP)
    created_at = serializers.DateTimeField()
