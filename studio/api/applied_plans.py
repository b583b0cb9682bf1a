"""Applied plans as JSON."""

from typing import Any

from rest_framework import serializers

from studio.services.plan_application import PLAN_ACTIONS


class PlanChangeSerializer(serializers.Serializer[Any]):
    """An object that an applied plan changed."""

    action = serializers.ChoiceField(
        PLAN_ACTIONS, help_text="The result for the object; `unchanged`: it already was as planned."
    )
    kind = serializers.CharField()
    namespace = serializers.CharField(allow_blank=True)
    name = serializers.CharField()
    warnings = serializers.ListField(child=serializers.CharField(), help_text="For example, what a deletion waits for.")


class MovedSerializer(serializers.Serializer[Any]):
    """The numbers of changes since the answer, which do not keep the plan from being applied."""

    submitted = serializers.IntegerField(help_text="Workloads of the namespaces that you see.")
    started = serializers.IntegerField(help_text="Workloads of these namespaces that got quota.")
    ended = serializers.IntegerField(help_text="Workloads of these namespaces.")
    nodes = serializers.IntegerField(help_text="Nodes that came, went, or changed.")


class PlanResultSerializer(serializers.Serializer[Any]):
    """The result of applying a plan."""

    objects = PlanChangeSerializer(many=True)
    moved = MovedSerializer()
    request_id = serializers.CharField(
        allow_blank=True,
        help_text="The id of this request. The audit has a record with this id for each changed object.",
    )


class AppliedSerializer(serializers.Serializer[Any]):
    """The user that applied a plan, and the changed objects."""

    by = serializers.CharField()
    request_id = serializers.CharField(allow_blank=True)
    objects = PlanChangeSerializer(many=True)
