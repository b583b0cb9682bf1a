"""What a submission would come to: applied, explained, priced, and taken back."""

import time
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from django.db import transaction
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.scope import ClusterView
from accounts.models import Cluster
from clusters.api.manifest_views import ApplyResultSerializer, ManifestsView, result_json
from clusters.manifests.apply import ApplyResult, apply_manifests
from gpus.vendors import VENDORS
from history.services.prices import read_prices
from history.services.reports.usage import per_unit
from queues.models import Workload
from scheduler.api.explanation_views import ExplanationSerializer, explanation_json
from scheduler.store.kept_world import kept_world
from scheduling.advice.explanation import Explanation, FlavorVerdict

_DEVICE: Final = "device"
"""The resource in the list of prices that stands for whole devices."""
_COUNTS: Final = frozenset(vendor.resources.count for vendor in VENDORS)


class CostSerializer(serializers.Serializer[Any]):
    """What an hour in one flavor costs."""

    pod_sets = serializers.ListField(child=serializers.CharField())
    flavor = serializers.CharField()
    per_hour = serializers.FloatField(help_text="Of all its pods together.")
    is_upper_bound = serializers.BooleanField(
        help_text="Whether it holds whole devices; a slice is charged by the larger of its shares."
    )


class PreviewedWorkloadSerializer(serializers.Serializer[Any]):
    """A workload that the submission would make."""

    namespace = serializers.CharField()
    name = serializers.CharField()
    explanation = ExplanationSerializer()
    costs = CostSerializer(many=True)


class PreviewSerializer(serializers.Serializer[Any]):
    """What a submission would come to now."""

    result = ApplyResultSerializer()
    currency = serializers.CharField(allow_blank=True, help_text="Empty: no prices are set.")
    workloads = PreviewedWorkloadSerializer(many=True)


class PreviewView(ClusterView):
    """`preview/`."""

    serializer_class = PreviewSerializer
    writes_what_is_mirrored = False  # apply_manifests knows which of its kinds are
    parser_classes = ManifestsView.parser_classes

    @extend_schema(
        request={"application/yaml": OpenApiTypes.STR, "application/json": OpenApiTypes.OBJECT},
        responses={200: PreviewSerializer},
        operation_id="preview",
    )
    def post(self, request: Request) -> Response:
        """Whether what these manifests make would start now, why not, and what it would cost. Nothing is stored."""
        now = time.time()
        with kept_world(self.cluster, now):
            pass  # Loading a large cluster takes seconds: before the transaction, which keeps others waiting.
        with transaction.atomic():
            result = apply_manifests(self.cluster, cast("bytes", request.data or b""), user=request.user)
            workloads = list(_workloads_of(self.cluster, result))
            with kept_world(self.cluster, now) as world:
                found = {row.key: world.explain(row.key) for row in workloads if world.workload(row.key) is not None}
            transaction.set_rollback(True)
        prices = read_prices(self.cluster)
        answer = {
            "result": result_json(result) | {"dry_run": True},
            "currency": prices["currency"],
            "workloads": [
                {
                    "namespace": row.namespace,
                    "name": row.name,
                    "explanation": explanation_json(found[row.key], self.access, self.cluster),
                    "costs": list(costs_of(found[row.key], prices)),
                }
                for row in workloads
                if row.key in found
            ],
        }
        return Response(answer)


def _workloads_of(cluster: Cluster, result: ApplyResult) -> Iterable[Workload]:
    for done in result.objects:
        of_object = Workload.objects.filter(cluster=cluster, namespace=done.namespace)
        if done.kind == "Workload":
            yield from of_object.filter(name=done.name)
        else:
            yield from of_object.filter(job__kind=done.kind, job__name=done.name).order_by("pk")


def costs_of(explanation: Explanation, prices: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    """What an hour costs in each flavor that is not refused for what it is; nothing where no price is set."""
    listed = {(price["flavor"], price["resource"]): float(price["per_hour"]) for price in prices["prices"]}
    for verdict in explanation.flavors:
        amounts = _amounts(verdict)
        priced = {
            resource: amount * listed.get((verdict.flavor, resource), listed.get(("", resource), 0.0))
            for resource, amount in amounts.items()
        }
        if any(priced.values()):
            yield {
                "pod_sets": list(verdict.pod_sets),
                "flavor": verdict.flavor,
                "per_hour": round(sum(priced.values()), 4),
                "is_upper_bound": priced.get(_DEVICE, 0.0) > 0,
            }


def _amounts(verdict: FlavorVerdict) -> dict[str, float]:
    """resource -> cores, GiB, or one of anything else; and whole devices."""
    asked = {need.resource: need.asked / per_unit(need.resource) for need in verdict.resources}
    devices = sum(amount for resource, amount in asked.items() if resource in _COUNTS)
    return {**asked, _DEVICE: devices} if devices else asked
