"""Preview a submission: apply it, explain it, price it, and roll it back."""

import json
import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from typing import Any, Final, cast

from django.contrib.auth.models import User
from django.db import transaction
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.flags import flag
from accounts.api.scope import ClusterView
from accounts.models import Cluster
from accounts.services.apply_result import Action
from clusters.api.manifest_views import ApplyResultSerializer, ManifestsView, result_json
from clusters.manifests import apply_manifests, get_manifests
from clusters.manifests.apply import ApplyResult
from foundation.exceptions import LimitReached, NotPermitted
from gpus.vendors import VENDORS
from history.services.prices import read_prices
from history.services.reports.usage import per_unit
from queues.kinds import KINDS as CONFIGURATION_KINDS
from queues.manifests.documents import read_documents
from queues.models import PodSet, Workload
from scheduler.api.explanation_views import ExplanationSerializer, explanation_json
from scheduler.store.configuration import cluster_configuration
from scheduler.store.kept_world import kept_world
from scheduling.advice.explanation import Explanation, FlavorVerdict
from scheduling.model.quantity import format_amounts
from scheduling.world import World
from studio.api.effects import EffectsSerializer, shown_effects
from studio.models import OPEN_STATES
from studio.services.plans import Plan, store_plan
from studio.services.questions import NoStudio, ask_preview, wait_for_answer
from studio.services.visible_names import VisibleNames

_CONFIGURING: Final = frozenset({*CONFIGURATION_KINDS, "Configuration", "ConfigMap"})
_DEVICE: Final = "device"
"""The resource in the list of prices that means whole devices."""
_WAIT_SECONDS: Final = 3.0
_NO_EFFECTS: Final = {"effects": None, "effects_pending": False, "effects_problem": ""}
_COUNTS: Final = frozenset(vendor.resources.count for vendor in VENDORS)


class CostSerializer(serializers.Serializer[Any]):
    """The hourly price in one flavor."""

    pod_sets = serializers.ListField(child=serializers.CharField())
    flavor = serializers.CharField()
    per_hour = serializers.FloatField(help_text="The price of all its pods together.")
    is_upper_bound = serializers.BooleanField(
        help_text="Whether the price assumes whole devices; a slice is charged the larger of its shares."
    )


class PreviewedPodSetSerializer(serializers.Serializer[Any]):
    """The equal pods of one template."""

    name = serializers.CharField()
    count = serializers.IntegerField()
    requests = serializers.DictField(child=serializers.CharField(), help_text="Requests per pod.")


class PreviewedWorkloadSerializer(serializers.Serializer[Any]):
    """A workload that the submission would create."""

    namespace = serializers.CharField()
    name = serializers.CharField()
    pod_sets = PreviewedPodSetSerializer(many=True)
    explanation = ExplanationSerializer()
    costs = CostSerializer(many=True)


class PreviewSerializer(serializers.Serializer[Any]):
    """The result of a submission if it were made now."""

    result = ApplyResultSerializer()
    currency = serializers.CharField(allow_blank=True, help_text="Empty: no prices are set.")
    workloads = PreviewedWorkloadSerializer(many=True)
    manifests = serializers.ListField(
        child=serializers.DictField(),
        help_text="The configuration objects of the request as they would be stored, with defaults for omitted fields.",
    )
    effects = EffectsSerializer(
        allow_null=True,
        help_text="Null unless `effects` is set, and until a studio has a first answer; null for a ConfigMap of the "
        "device plugin.",
    )
    effects_pending = serializers.BooleanField(
        help_text="A studio still tries the change: send the request again for more effects."
    )
    effects_problem = serializers.CharField(
        allow_blank=True, help_text="Why there are no effects, or not all: no studio runs, or its trial failed."
    )


class PreviewView(ClusterView):
    """`preview/`."""

    serializer_class = PreviewSerializer
    writes_what_is_mirrored = False  # apply_manifests checks which of its kinds are allowed
    parser_classes = ManifestsView.parser_classes

    @extend_schema(
        parameters=[
            OpenApiParameter("effects", bool, description="Also preview the scheduler's decisions after the change."),
            OpenApiParameter("delete", bool, description="Preview the deletion of these objects instead."),
        ],
        request={"application/yaml": OpenApiTypes.STR, "application/json": OpenApiTypes.OBJECT},
        responses={200: PreviewSerializer},
        operation_id="preview",
    )
    def post(self, request: Request) -> Response:
        """Preview a submission: whether its workloads would start now, why not, and the price. Nothing is stored.

        With `effects`, a studio also tries the other workloads that would be affected, and the quotas that would be
        exceeded. The request waits some seconds for it; while `effects_pending` is true, send it again.
        """
        now = time.time()
        with_effects = flag(request, "effects")
        if with_effects and not (self.access.is_cluster_admin or self.access.cohorts):
            # Effects concern the queues of all tenants.
            raise NotPermitted("Only cluster admins and queue-admins may preview effects.")
        with kept_world(self.cluster, now):
            pass  # Load a large cluster, which takes seconds, before the transaction: others wait for its locks.
        with ExitStack() as held, transaction.atomic():
            result = self._changed(request)
            workloads = list(_workloads_of(self.cluster, result))
            manifests = list(_manifests_of(self.cluster, result))
            world = held.enter_context(kept_world(self.cluster, now))
            self._configure(world, result, held)
            found = {row.key: world.explain(row.key) for row in workloads if world.workload(row.key) is not None}
            pod_sets = _pod_sets_of(workloads)
            transaction.set_rollback(True)
        prices = read_prices(self.cluster)
        answer = {
            "result": result_json(result) | {"dry_run": True},
            "currency": prices["currency"],
            "workloads": [
                {
                    "namespace": row.namespace,
                    "name": row.name,
                    "pod_sets": pod_sets[row.pk],
                    "explanation": explanation_json(found[row.key], self.access, self.cluster),
                    "costs": list(costs_of(found[row.key], prices)),
                }
                for row in workloads
                if row.key in found
            ],
            "manifests": manifests,
            **(self._effects(request) if with_effects and not _is_of_devices(result) else _NO_EFFECTS),
        }
        return Response(answer)

    def _changed(self, request: Request) -> ApplyResult:
        body = cast("bytes", request.data or b"")
        if not flag(request, "delete"):
            return apply_manifests(self.cluster, body, user=request.user)
        plan = Plan(delete=tuple(read_documents(body)))
        return store_plan(self.cluster, plan, self.access, cast("User", request.user))

    def _configure(self, world: World, result: ApplyResult, held: ExitStack) -> None:
        """Let the World follow the Configuration of the call until `held` is left."""
        if all(done.kind != "Configuration" for done in result.objects):
            return
        before = world.configuration
        world.set_configuration(cluster_configuration(Cluster.objects.get(pk=self.cluster.pk)))
        held.callback(world.set_configuration, before)

    def _effects(self, request: Request) -> dict[str, Any]:
        """Return the effects, tried by a studio; the whole ones, or the first ones while it still tries."""
        try:
            question = ask_preview(cast("User", request.user), self.cluster, _plan_text(request))
        except (NoStudio, LimitReached) as refusal:
            return _NO_EFFECTS | {"effects_problem": refusal.message}
        wait_for_answer(question, _WAIT_SECONDS)
        answer = question.answer
        part = answer and (answer["whole"] or answer["first"])
        return {
            "effects": shown_effects(part["effects"], VisibleNames(self.access, self.cluster)) if part else None,
            "effects_pending": question.state in OPEN_STATES,
            "effects_problem": question.message,
        }


def _plan_text(request: Request) -> str:
    text = cast("bytes", request.data or b"").decode("utf-8-sig")
    if not flag(request, "delete"):
        return text
    return json.dumps({"delete": [document.content for document in read_documents(text)]})


def _is_of_devices(result: ApplyResult) -> bool:
    """Return whether it changes how devices are read: its effect shows only when the nodes are read again."""
    return any(done.kind == "ConfigMap" for done in result.objects)


def _manifests_of(cluster: Cluster, result: ApplyResult) -> Iterable[Mapping[str, Any]]:
    for done in result.objects:
        if done.kind in _CONFIGURING and done.action is not Action.PRUNED:
            yield from get_manifests(cluster, done.kind, done.name, done.namespace)


def _workloads_of(cluster: Cluster, result: ApplyResult) -> Iterable[Workload]:
    for done in result.objects:
        of_object = Workload.objects.filter(cluster=cluster, namespace=done.namespace)
        if done.action is Action.PRUNED:
            continue
        if done.kind == "Workload":
            yield from of_object.filter(name=done.name)
        else:
            yield from of_object.filter(job__kind=done.kind, job__name=done.name).order_by("pk")


def _pod_sets_of(workloads: Iterable[Workload]) -> dict[int, list[dict[str, Any]]]:
    """workload's id -> its pod sets, as the answer has them."""
    found: dict[int, list[dict[str, Any]]] = {row.pk: [] for row in workloads}
    for each in PodSet.objects.filter(workload_id__in=found).order_by("workload_id", "position"):
        requests = format_amounts(each.requests)
        found[each.workload_id].append({"name": each.name, "count": each.count, "requests": requests})
    return found


def costs_of(explanation: Explanation, prices: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    """Return the price of an hour in each flavor that is not refused for good; nothing without prices."""
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
