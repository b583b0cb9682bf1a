"""Why a workload waits, as data. Names of other objects are shown only to users who may see them."""

import time
from collections.abc import Iterable, Mapping
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
from queues.api.expected_start import EXPECTED_COLUMNS, ExpectedStartSerializer, take_expected_start
from queues.models import Workload
from queues.services.visibility import Reader, visibility_of
from scheduler.store.kept_world import kept_world
from scheduling.advice.explanation import Explanation, Victim, Waiting, WorkloadHolder
from scheduling.advice.waiting_rules import Rule, WaitState
from scheduling.cycle.planned_starts import PlannedStart
from scheduling.model.times import rfc3339

Other = TypeVar("Other", Waiting, WorkloadHolder, Victim, PlannedStart)

WAIT_STATES: Final = [state.value for state in WaitState]
_HIDDEN = "Empty if you may not see it."


class ResourceNeedSerializer(serializers.Serializer[Any]):
    """One resource in one flavor; amounts are integers in base units (cpu in milli, memory in bytes)."""

    resource = serializers.CharField()
    asked = serializers.IntegerField()
    nominal = serializers.IntegerField(help_text="The ClusterQueue's own quota.")
    used = serializers.IntegerField(help_text="Current usage of the ClusterQueue.")
    borrowable = serializers.IntegerField(help_text="The part of `free` above the ClusterQueue's own quota.")
    free = serializers.IntegerField(help_text="The amount that the workload can still use.")
    lacking = serializers.IntegerField()
    maximum = serializers.IntegerField(help_text="The maximum that the workload can ever get.")
    deserved = serializers.IntegerField(
        allow_null=True,
        help_text="The quota that the cohort's sharing policy gives to the ClusterQueue now; null without a policy.",
    )


class RefusedBySerializer(serializers.Serializer[Any]):
    """The nodes that one filter refuses. A node is counted under each reason of its devices."""

    reason = serializers.CharField(help_text="HAMi's token, or that of a node filter.")
    nodes = serializers.IntegerField()
    devices = serializers.IntegerField(help_text="0 for a filter that only looks at the node.")


class NodeFiltersSerializer(serializers.Serializer[Any]):
    """The filters that refuse each node of the cluster, for the first pod without a place."""

    pod_set = serializers.CharField()
    replica = serializers.IntegerField()
    nodes = serializers.IntegerField(help_text="The number of nodes in the cluster.")
    refused = RefusedBySerializer(many=True)
    nearest_node = serializers.CharField(allow_null=True)
    nearest_reason = serializers.CharField(allow_blank=True)
    message = serializers.CharField()
    namespace_quota = serializers.BooleanField(help_text="Whether the namespace's ResourceQuota is exceeded.")


class FlavorVerdictSerializer(serializers.Serializer[Any]):
    """The result of one flavor for one group of pod sets."""

    pod_sets = serializers.ListField(child=serializers.CharField())
    flavor = serializers.CharField()
    rule = serializers.ChoiceField(choices=[rule.value for rule in Rule], help_text="`None`: the flavor fits.")
    message = serializers.CharField(allow_blank=True)
    resources = ResourceNeedSerializer(many=True)
    nodes = NodeFiltersSerializer(allow_null=True, help_text="Null if devices are not needed, or are found.")
    domains = serializers.IntegerField(help_text="The number of domains of the flavor's topology; 0 without one.")
    domains_refused = serializers.DictField(
        child=serializers.IntegerField(), help_text="The number of domains by reason of refusal."
    )


class WaitingSerializer(serializers.Serializer[Any]):
    """Another pending workload."""

    workload = serializers.CharField(allow_blank=True, help_text=f"namespace/name. {_HIDDEN}")
    cluster_queue = serializers.CharField(allow_blank=True, help_text=_HIDDEN)
    priority = serializers.IntegerField()


class QueueHolderSerializer(serializers.Serializer[Any]):
    """A ClusterQueue that uses the missing resource."""

    flavor = serializers.CharField()
    resource = serializers.CharField()
    cluster_queue = serializers.CharField(allow_blank=True, help_text=_HIDDEN)
    used = serializers.IntegerField()
    nominal = serializers.IntegerField()
    borrowed = serializers.IntegerField()


class WorkloadHolderSerializer(WaitingSerializer):
    """A workload that holds the missing resource."""

    flavor = serializers.CharField()
    resource = serializers.CharField()
    amount = serializers.IntegerField()


class VictimSerializer(WaitingSerializer):
    """A workload that would be preempted."""

    reason = serializers.CharField()


class PriorityFactorsSerializer(serializers.Serializer[Any]):
    """A multifactor priority and its weighted parts, which add up to it."""

    priority = serializers.IntegerField()
    age = serializers.FloatField()
    association = serializers.FloatField()
    fair_share = serializers.FloatField()
    job_size = serializers.FloatField()
    partition = serializers.FloatField(help_text="The factor of the ClusterQueue's queue_priority.")
    qos = serializers.FloatField(help_text="The factor of its class's priority.")
    resources = serializers.DictField(child=serializers.FloatField())
    site = serializers.FloatField()
    nice = serializers.FloatField(help_text="The amount that is subtracted.")


class PlannedAmountSerializer(serializers.Serializer[Any]):
    """Quota that a planned start uses."""

    flavor = serializers.CharField()
    resource = serializers.CharField()
    amount = serializers.IntegerField(help_text="In base units (cpu in milli, memory in bytes).")


class PlannedStartSerializer(serializers.Serializer[Any]):
    """A planned start of a ClusterQueue with backfill, by the declared time limits of the workloads that hold quota."""

    workload = serializers.CharField(allow_blank=True, help_text=f"namespace/name. {_HIDDEN}")
    cluster_queue = serializers.CharField(allow_blank=True, help_text=_HIDDEN)
    starts_at = serializers.DateTimeField()
    quota = PlannedAmountSerializer(many=True)


class ReservedWindowSerializer(serializers.Serializer[Any]):
    """A window of a reservation that keeps nodes free for others."""

    reservation = serializers.CharField()
    starts_at = serializers.DateTimeField()
    ends_at = serializers.DateTimeField()


class ExplanationSerializer(serializers.Serializer[Any]):
    """Why a workload waits, computed from the current state."""

    state = serializers.ChoiceField(choices=WAIT_STATES)
    rule = serializers.ChoiceField(choices=[rule.value for rule in Rule], help_text="The reason why it waits.")
    reason = serializers.CharField(allow_blank=True, help_text="The reason of its QuotaReserved condition.")
    message = serializers.CharField()
    remedy = serializers.CharField(allow_blank=True, help_text="A change that would let it start.")
    cluster_queue = serializers.CharField(allow_blank=True)
    strict = serializers.BooleanField(help_text="Whether the workloads ahead must start first (StrictFIFO).")
    position = serializers.IntegerField(
        help_text="The workload's position in its ClusterQueue, from 1; 0: it is in no queue."
    )
    waiting = serializers.IntegerField(
        help_text="The number of pending workloads in its ClusterQueue, including this one."
    )
    ahead = WaitingSerializer(many=True, help_text="The first workloads ahead of it in its ClusterQueue.")
    contenders = WaitingSerializer(
        many=True,
        help_text="The first workloads of the cohort's other ClusterQueues that a cycle considers before this one.",
    )
    flavors = FlavorVerdictSerializer(many=True)
    queue_holders = QueueHolderSerializer(many=True)
    workload_holders = WorkloadHolderSerializer(many=True)
    victims = VictimSerializer(many=True)
    factors = PriorityFactorsSerializer(
        allow_null=True, help_text="Null unless a multifactor priority orders the workload."
    )
    planned_start = PlannedStartSerializer(
        allow_null=True, help_text="Its own planned start, which later workloads may not delay; null without backfill."
    )
    would_delay = PlannedStartSerializer(
        allow_null=True, help_text="The planned start that it would delay if it started now: it waits for that reason."
    )
    reservations = ReservedWindowSerializer(
        many=True, help_text="The windows that close nodes to it, the first to end first, if its rule is Reservation."
    )
    limit_to_start = serializers.IntegerField(
        allow_null=True,
        help_text="The longest time limit, in seconds, with which it would start now beside these reservations.",
    )


class ExplainedWorkloadSerializer(ExplanationSerializer):
    """Why a workload waits, and when it may start."""

    expected_start = ExpectedStartSerializer(
        allow_null=True, help_text="Null for a workload that holds quota or has finished."
    )


class ExplanationView(ClusterView):
    """The engine's part of `workloads/{namespace}/{name}/explanation/`, to which the studio adds remedies."""

    serializer_class = ExplainedWorkloadSerializer

    @extend_schema(responses=ExplainedWorkloadSerializer)
    def get(self, request: Request, namespace: str, name: str) -> Response:
        """Explain why the workload waits: the rule, each flavor and resource, nodes and devices, the workloads ahead,
        and the workloads that hold what it needs.

        The explanation includes the newest estimate of its start.
        """
        self.require("view", "Workload", namespace)
        rows = Workload.objects.filter(cluster=self.cluster, namespace=namespace, name=name)
        row = rows.values("status", "active", "quota_reserved_at", **EXPECTED_COLUMNS).first()
        if row is None:
            raise self.missing("Workload", namespace, name)
        with kept_world(self.cluster, time.time()) as world:
            key = f"{namespace}/{name}"
            found = FINISHED if world.workload(key) is None else world.explain(key)
        expected = take_expected_start(row, timezone.now())
        return Response(explanation_json(found, self.access, self.cluster) | {"expected_start": expected})


def explanation_json(found: Explanation, access: Access, cluster: Cluster) -> dict[str, Any]:
    """Return the explanation as this reader may see it."""
    return shown_explanation(asdict(found), access, cluster)


def shown_explanation(found: Mapping[str, Any], access: Access, cluster: Cluster) -> dict[str, Any]:
    """Workloads of namespaces and ClusterQueues that the reader may not see have no name; their numbers stay."""
    visible = visibility_of(access, cluster)

    def queue(name: str) -> str:
        return name if visible.sees_queue(name) else ""

    def others(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        return [
            {
                **row,
                "workload": row["workload"] if access.sees(row["workload"].partition("/")[0]) else "",
                "cluster_queue": queue(row["cluster_queue"]),
            }
            for row in rows
        ]

    def planned(start: Mapping[str, Any] | None) -> dict[str, Any] | None:
        if start is None:
            return None
        (row,) = others([start])
        return row | {"starts_at": rfc3339(start["starts_at"], whole_seconds=True)}

    return {
        **found,
        "planned_start": planned(found["planned_start"]),
        "would_delay": planned(found["would_delay"]),
        "reservations": [
            {**window, **{key: rfc3339(window[key], whole_seconds=True) for key in ("starts_at", "ends_at")}}
            for window in found["reservations"]
        ],
        "message": Reader(access, cluster).message(found["message"]),
        "ahead": others(found["ahead"]),
        "contenders": others(found["contenders"]),
        "workload_holders": others(found["workload_holders"]),
        "victims": others(found["victims"]),
        "queue_holders": [{**row, "cluster_queue": queue(row["cluster_queue"])} for row in found["queue_holders"]],
    }


FINISHED = Explanation(WaitState.HOLDS_QUOTA, Rule.NONE, "Finished", "It has finished.")
