"""Preview a submission: apply it, explain it, price it, and roll it back."""

import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from typing import Any, Final, cast

from django.db import transaction
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.flags import flag
from accounts.api.scope import ClusterView
from accounts.models import Cluster
from accounts.services.apply_result import Action, Applied
from accounts.services.cluster_settings import CONFIGURATION_NAME
from clusters.api.manifest_views import ApplyResultSerializer, ManifestsView, result_json
from clusters.manifests import apply_manifests, delete_manifest, get_manifests, kind_named
from clusters.manifests.apply import ApplyResult
from foundation.exceptions import NotPermitted
from gpus.vendors import VENDORS
from history.services.prices import read_prices
from history.services.reports.usage import per_unit
from queues.kinds import KINDS as CONFIGURATION_KINDS
from queues.manifests.documents import Document, read_documents
from queues.models import PodSet, Workload
from scheduler.api.explanation_views import ExplanationSerializer, explanation_json
from scheduler.store.configuration import cluster_configuration
from scheduler.store.kept_world import kept_world
from scheduling.advice.explanation import Explanation, FlavorVerdict
from scheduling.model.quantity import format_amounts
from scheduling.outlook import Outlook, effects, look_ahead
from scheduling.world import World
from studio.api.effects import EffectsSerializer, effects_json

_CONFIGURING: Final = frozenset({*CONFIGURATION_KINDS, "Configuration", "ConfigMap"})
_DEVICE: Final = "device"
"""The resource in the list of prices that stands for whole devices."""
_TRIED_SECONDS: Final = 1.5
"""How long cycles are tried: a person waits for the answer."""
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
        help_text="Null unless `effects` is set; always null for a ConfigMap of the device plugin.",
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

        With `effects`, also list the other workloads that would be affected, and the quotas that would be exceeded.
        """
        now = time.time()
        with_effects = flag(request, "effects")
        if with_effects and not (self.access.is_cluster_admin or self.access.cohorts):
            # Effects concern the queues of all tenants, and their preview delays other requests for seconds.
            raise NotPermitted("Only cluster admins and queue-admins may preview effects.")
        # Load a large cluster, which takes seconds, before the transaction, so that others do not wait for its locks.
        with kept_world(self.cluster, now) as world:
            before = _outlook(world, now) if with_effects else None
        with ExitStack() as held:
            with transaction.atomic():
                result = self._changed(request)
                workloads = list(_workloads_of(self.cluster, result))
                manifests = list(_manifests_of(self.cluster, result))
                world = held.enter_context(kept_world(self.cluster, now))
                self._configure(world, result, held)
                found = {row.key: world.explain(row.key) for row in workloads if world.workload(row.key) is not None}
                pod_sets = _pod_sets_of(workloads)
                transaction.set_rollback(True)
            # The rows are unlocked again, but the World still contains the change.
            after = _outlook(world, now) if with_effects and not _is_of_devices(result) else None
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
            "effects": None if before is None or after is None else effects_json(effects(before, after), self.access),
        }
        return Response(answer)

    def _changed(self, request: Request) -> ApplyResult:
        body = cast("bytes", request.data or b"")
        if not flag(request, "delete"):
            return apply_manifests(self.cluster, body, user=request.user)
        return ApplyResult(tuple(self._deleted(document) for document in read_documents(body)), dry_run=True)

    def _configure(self, world: World, result: ApplyResult, held: ExitStack) -> None:
        """Let the World follow the Configuration of the call until `held` is left."""
        if all(done.kind != "Configuration" for done in result.objects):
            return
        before = world.configuration
        world.set_configuration(cluster_configuration(Cluster.objects.get(pk=self.cluster.pk)))
        held.callback(world.set_configuration, before)

    def _deleted(self, document: Document) -> Applied:
        """The object is marked or gone; a warning says what holds it."""
        kind = kind_named(str(document.content.get("kind") or ""))
        metadata = document.content.get("metadata")
        named = metadata if isinstance(metadata, Mapping) else {}
        namespace = str(named.get("namespace") or "") if kind.namespaced else ""
        # A Configuration has no name in its manifest.
        name = str(named.get("name") or (CONFIGURATION_NAME if kind.name == "Configuration" else ""))
        if kind.namespaced and not self.access.may_in_tree(kind.name):
            self.require("view", kind.name, namespace, name)
        waiting = delete_manifest(self.cluster, kind, namespace, name, access=self.access)
        return Applied(kind.name, namespace, name, Action.PRUNED, (waiting,) if waiting else ())


def _outlook(world: World, now: float) -> Outlook:
    """The result of the next cycles, as far as the time allows to try."""
    end = time.monotonic() + _TRIED_SECONDS
    return look_ahead(world, now, lambda: time.monotonic() < end)


def _is_of_devices(result: ApplyResult) -> bool:
    """Whether it changes how devices are read: what that does shows when the nodes are read again, not before."""
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
