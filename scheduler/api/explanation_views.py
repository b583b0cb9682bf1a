"""Why a workload waits, as data; names of others are told to those who may see them."""

import time
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, Final, TypeVar

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.scope import ClusterView
from accounts.models import Cluster
from accounts.services.access import Access
from queues.models import Workload
from queues.querysets import queue_time
from queues.services.visibility import Reader, visibility_of
from scheduler.api.expected_start import NoEstimate, expected_start
from scheduler.store.kept_world import kept_world
from scheduling.advice.explanation import Explanation, Rule, Victim, Waiting, WaitState, WorkloadHolder

Other = TypeVar("Other", Waiting, WorkloadHolder, Victim)

WAIT_STATES: Final = [state.value for state in WaitState]
_HIDDEN = "Empty where it is not yours to see."


class ResourceNeedSerializer(serializers.Serializer[Any]):
    """One resource in one flavor; amounts are integers in base units (cpu in milli, memory in bytes)."""

    resource = serializers.CharField()
    asked = serializers.IntegerField()
    nominal = serializers.IntegerField(help_text="The ClusterQueue's own quota.")
    used = serializers.IntegerField(help_text="By the ClusterQueue now.")
    borrowable = serializers.IntegerField(help_text="The part of `free` beyond the ClusterQueue's own quota.")
    free = serializers.IntegerField(help_text="The amount that the workload could still use.")
    lacking = serializers.IntegerField()
    maximum = serializers.IntegerField(help_text="The most that it could ever have.")


class RefusedBySerializer(serializers.Serializer[Any]):
    """The nodes that one filter refuses. A node counts under each reason of its devices."""

    reason = serializers.CharField(help_text="HAMi's token, or that of a node's own filter.")
    nodes = serializers.IntegerField()
    devices = serializers.IntegerField(help_text="0 for a filter that looks at the node alone.")


class NodeFiltersSerializer(serializers.Serializer[Any]):
    """The filters that refuse each node of the cluster for the first pod without a place."""

    pod_set = serializers.CharField()
    replica = serializers.IntegerField()
    nodes = serializers.IntegerField(help_text="In the cluster.")
    refused = RefusedBySerializer(many=True)
    nearest_node = serializers.CharField(allow_null=True)
    nearest_reason = serializers.CharField(allow_blank=True)
    message = serializers.CharField()
    namespace_quota = serializers.BooleanField(help_text="The namespace's ResourceQuota is in the way.")


class FlavorVerdictSerializer(serializers.Serializer[Any]):
    """One flavor for one group of pod sets."""

    pod_sets = serializers.ListField(child=serializers.CharField())
    flavor = serializers.CharField()
    rule = serializers.ChoiceField(choices=[rule.value for rule in Rule], help_text="`None`: nothing refuses it.")
    message = serializers.CharField(allow_blank=True)
    resources = ResourceNeedSerializer(many=True)
    nodes = NodeFiltersSerializer(allow_null=True, help_text="Null where devices are not looked for, or are found.")
    domains = serializers.IntegerField(help_text="Of the flavor's topology; 0 without one.")
    domains_refused = serializers.DictField(child=serializers.IntegerField(), help_text="Reason -> domains.")


class WaitingSerializer(serializers.Serializer[Any]):
    """Another workload that waits."""

    workload = serializers.CharField(allow_blank=True, help_text=f"namespace/name. {_HIDDEN}")
    cluster_queue = serializers.CharField(allow_blank=True, help_text=_HIDDEN)
    priority = serializers.IntegerField()


class QueueHolderSerializer(serializers.Serializer[Any]):
    """A ClusterQueue that uses what is lacking."""

    flavor = serializers.CharField()
    resource = serializers.CharField()
    cluster_queue = serializers.CharField(allow_blank=True, help_text=_HIDDEN)
    used = serializers.IntegerField()
    nominal = serializers.IntegerField()
    borrowed = serializers.IntegerField()


class WorkloadHolderSerializer(WaitingSerializer):
    """A workload that holds what is lacking."""

    flavor = serializers.CharField()
    resource = serializers.CharField()
    amount = serializers.IntegerField()


class VictimSerializer(WaitingSerializer):
    """A workload that would be preempted to make room."""

    reason = serializers.CharField()


class PriorityFactorsSerializer(serializers.Serializer[Any]):
    """A multifactor priority and the weighted parts that it is the sum of."""

    priority = serializers.IntegerField()
    age = serializers.FloatField()
    association = serializers.FloatField()
    fair_share = serializers.FloatField()
    job_size = serializers.FloatField()
    partition = serializers.FloatField(help_text="Of the ClusterQueue's queue_priority.")
    qos = serializers.FloatField(help_text="Of the priority of its class.")
    resources = serializers.DictField(child=serializers.FloatField())
    site = serializers.FloatField()
    nice = serializers.FloatField(help_text="What is taken off.")


class ExplanationSerializer(serializers.Serializer[Any]):
    """Why a workload waits, computed from what is stored now."""

    state = serializers.ChoiceField(choices=WAIT_STATES)
    rule = serializers.ChoiceField(choices=[rule.value for rule in Rule], help_text="The reason why it waits.")
    reason = serializers.CharField(allow_blank=True, help_text="As in its QuotaReserved condition.")
    message = serializers.CharField()
    remedy = serializers.CharField(allow_blank=True, help_text="A change that would let it start.")
    cluster_queue = serializers.CharField(allow_blank=True)
    strict = serializers.BooleanField(help_text="No workload of its ClusterQueue may pass the ones ahead (StrictFIFO).")
    position = serializers.IntegerField(help_text="From 1 in its ClusterQueue; 0: it is in no queue.")
    waiting = serializers.IntegerField(help_text="In its ClusterQueue, itself included.")
    ahead = WaitingSerializer(many=True, help_text="The first workloads ahead of it in its ClusterQueue.")
    contenders = WaitingSerializer(
        many=True, help_text="Heads of the cohort's other ClusterQueues that a cycle decides on before its own."
    )
    flavors = FlavorVerdictSerializer(many=True)
    queue_holders = QueueHolderSerializer(many=True)
    workload_holders = WorkloadHolderSerializer(many=True)
    victims = VictimSerializer(many=True)
    factors = PriorityFactorsSerializer(
        allow_null=True, help_text="Null where its class orders it, and not a multifactor priority."
    )


class ExpectedStartSerializer(serializers.Serializer[Any]):
    """When a workload may start: an estimate, not a promise."""

    at = serializers.DateTimeField(allow_null=True, help_text="Null where nothing can be said; `reason` says why.")
    seconds = serializers.IntegerField(allow_null=True, help_text="From now until then.")
    reason = serializers.ChoiceField(
        choices=[reason.value for reason in NoEstimate], allow_blank=True, help_text="Why there is no estimate."
    )
    basis = serializers.CharField(help_text="The basis of the estimate, or why there is none, in a sentence.")
    window_seconds = serializers.IntegerField(help_text="How far back the starts were counted.")
    admitted = serializers.IntegerField(
        allow_null=True, help_text="Workloads that its ClusterQueue gave quota in that time; null: not counted."
    )
    overtaken_by = serializers.IntegerField(
        allow_null=True, help_text="Workloads among `admitted` that were queued later than this one; null: not counted."
    )
    ahead = serializers.IntegerField(help_text="Workloads before it in its ClusterQueue.")


class ExplainedWorkloadSerializer(ExplanationSerializer):
    """Why a workload waits, and when it may start."""

    expected_start = ExpectedStartSerializer()


class ExplanationView(ClusterView):
    """The engine's part of `workloads/{namespace}/{name}/explanation/`, to which the studio adds remedies."""

    serializer_class = ExplainedWorkloadSerializer

    @extend_schema(responses=ExplainedWorkloadSerializer)
    def get(self, request: Request, namespace: str, name: str) -> Response:
        """Why the workload waits: the rule, each flavor and resource, nodes and devices, who is ahead, who holds it.

        With an estimate of when it starts, by the pace of its ClusterQueue in the last hour, where that pace can tell.
        """
        self.require("view", "Workload", namespace)
        rows = Workload.objects.filter(cluster=self.cluster, namespace=namespace, name=name)
        queued_at = rows.values_list(queue_time(), flat=True).first()
        if queued_at is None:
            raise self.missing("Workload", namespace, name)
        with kept_world(self.cluster, time.time()) as world:
            key = f"{namespace}/{name}"
            found = FINISHED if world.workload(key) is None else world.explain(key)
        expected = expected_start(self.cluster, found, queued_at, timezone.now())
        return Response(explanation_json(found, self.access, self.cluster) | {"expected_start": asdict(expected)})


def explanation_json(found: Explanation, access: Access, cluster: Cluster) -> dict[str, Any]:
    """Workloads of namespaces and ClusterQueues that the reader may not see have no name; their numbers stay."""
    visible = visibility_of(access, cluster)

    def queue(name: str) -> str:
        return name if visible.sees_queue(name) else ""

    def others(rows: Iterable[Other]) -> list[dict[str, Any]]:
        return [
            asdict(row)
            | {
                "workload": row.workload if access.sees(row.workload.partition("/")[0]) else "",
                "cluster_queue": queue(row.cluster_queue),
            }
            for row in rows
        ]

    return asdict(found) | {
        "message": Reader(access, cluster).message(found.message),
        "ahead": others(found.ahead),
        "contenders": others(found.contenders),
        "workload_holders": others(found.workload_holders),
        "victims": others(found.victims),
        "queue_holders": [asdict(row) | {"cluster_queue": queue(row.cluster_queue)} for row in found.queue_holders],
    }


FINISHED = Explanation(WaitState.HOLDS_QUOTA, Rule.NONE, "Finished", "It has finished.")
