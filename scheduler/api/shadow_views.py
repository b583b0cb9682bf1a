"""Mode shadow: compares kueueweb's decisions with those of the scheduler that runs the cluster."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, cast

from django.db.models import Sum
from django.db.models.functions import Trunc
from django.utils import timezone
from django_filters import rest_framework as filters
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.names_filter import NamesFilter
from accounts.api.scope import ClusterView
from queues.services.visibility import readers_of
from scheduler.models import ShadowCount, ShadowDifference
from scheduling.shadow.choices import Act
from scheduling.shadow.comparisons import Verdict

_COUNTS: Final = (
    "agreed", "differed", "their_reservations", "our_reservations", "their_preemptions", "our_preemptions",
    "unfinished", "out_of_turn",
)  # fmt: skip
_FIELDS: Final = ("id", "cluster_id", "at", "namespace", "workload_name", "workload_uid", "verdict", "theirs", "ours")
_MAX_HOURS: Final = 24 * 31
_HOURLY_FROM: Final = 6
"""For a longer period than these hours, a point covers an hour instead of a minute."""


class ShadowCountsSerializer(serializers.Serializer[Any]):
    """The number of compared decisions, and the decisions of each scheduler."""

    agreed = serializers.IntegerField()
    differed = serializers.IntegerField()
    their_reservations = serializers.IntegerField(
        help_text="The number of workloads that the other scheduler gave quota."
    )
    our_reservations = serializers.IntegerField(
        help_text="The number of workloads that kueueweb's scheduler would have given quota."
    )
    their_preemptions = serializers.IntegerField()
    our_preemptions = serializers.IntegerField()
    unfinished = serializers.IntegerField(help_text="The number of comparisons that were cut short.")
    out_of_turn = serializers.IntegerField(
        help_text="The number of agreed decisions about workloads that kueueweb's scheduler would have tried after "
        "others, which its rules had refused a moment earlier. A large share means that the schedulers order workloads "
        "differently, or that the other one is slow."
    )


class ShadowPointSerializer(ShadowCountsSerializer):
    """The comparison over one minute or hour."""

    at = serializers.DateTimeField()


class ShadowOfClusterSerializer(serializers.Serializer[Any]):
    """The comparison in one cluster."""

    cluster = serializers.CharField()
    agreement = serializers.FloatField(allow_null=True, help_text="From 0 to 1; null: no decisions were compared.")
    totals = ShadowCountsSerializer()


class ShadowSerializer(serializers.Serializer[Any]):
    """A comparison of the decisions of the last hours, for all clusters together and for each."""

    since = serializers.DateTimeField()
    agreement = serializers.FloatField(allow_null=True, help_text="From 0 to 1; null: no decisions were compared.")
    totals = ShadowCountsSerializer()
    points = ShadowPointSerializer(many=True)
    clusters = ShadowOfClusterSerializer(many=True)


class PodSetChoiceSerializer(serializers.Serializer[Any]):
    """The assignment of a pod set."""

    name = serializers.CharField()
    count = serializers.IntegerField()
    flavors = serializers.DictField(child=serializers.CharField())


class ChoiceSerializer(serializers.Serializer[Any]):
    """The decision of a scheduler about a workload, with its reason."""

    act = serializers.ChoiceField([act.value for act in Act])
    cluster_queue = serializers.CharField(allow_blank=True)
    flavors = PodSetChoiceSerializer(many=True)
    reason = serializers.CharField(allow_blank=True)
    message = serializers.CharField(allow_blank=True)


class ShadowDifferenceSerializer(serializers.Serializer[Any]):
    """A workload for which the two schedulers decided differently."""

    id = serializers.IntegerField()
    cluster = serializers.CharField()
    at = serializers.DateTimeField()
    namespace = serializers.CharField()
    workload_name = serializers.CharField()
    workload_uid = serializers.UUIDField()
    verdict = serializers.ChoiceField([verdict.value for verdict in Verdict if verdict is not Verdict.AGREE])
    theirs = ChoiceSerializer()
    ours = ChoiceSerializer()


class ShadowDifferenceFilter(filters.FilterSet):  # type: ignore[misc]  # the library is not typed
    """Filters of `shadow/differences/`."""

    namespace = NamesFilter()
    workload = NamesFilter(field_name="workload_name")
    verdict = NamesFilter()

    class Meta:
        model = ShadowDifference
        fields: list[str] = []


class ShadowView(ClusterView):
    """`shadow/`."""

    serializer_class = ShadowSerializer
    spans_clusters = True

    @extend_schema(
        parameters=[OpenApiParameter("hours", int, description=f"1 to {_MAX_HOURS}; 24 by default.")],
        responses=ShadowSerializer,
    )
    def get(self, request: Request) -> Response:
        """Report how far both schedulers agreed, over time. Only users who may see the whole cluster may read it.

        `*` leaves out other clusters.
        """
        reach = self.reach.permitting("view", "ShadowComparison")
        hours = _hours(request.query_params.get("hours", "24"))
        since = timezone.now() - timedelta(hours=hours)
        rows = ShadowCount.objects.filter(reach.rows(), at__gte=since)
        step = Trunc("at", "hour" if hours > _HOURLY_FROM else "minute")
        sums = {f"sum_{each}": Sum(each) for each in _COUNTS}
        moments: dict[datetime, Counter[str]] = defaultdict(Counter)
        clusters: dict[int, Counter[str]] = {cluster.pk: Counter() for cluster in reach.clusters}
        counted = rows.order_by().values("cluster_id", moment=step).annotate(**sums)
        for row in cast("Iterable[Mapping[str, Any]]", counted):
            counts = {each: row[f"sum_{each}"] for each in _COUNTS}
            moments[row["moment"]].update(counts)
            clusters[row["cluster_id"]].update(counts)
        return Response(
            {
                "since": since,
                **_summary(sum(clusters.values(), Counter())),
                "points": [{"at": at, **_counts(moments[at])} for at in sorted(moments)],
                "clusters": [{"cluster": reach.name(pk), **_summary(counts)} for pk, counts in clusters.items()],
            }
        )


def _summary(counts: Counter[str]) -> dict[str, Any]:
    compared = counts["agreed"] + counts["differed"]
    return {"agreement": counts["agreed"] / compared if compared else None, "totals": _counts(counts)}


def _counts(counts: Counter[str]) -> dict[str, int]:
    return {each: counts[each] for each in _COUNTS}


class ShadowDifferenceListView(ClusterView):
    """`shadow/differences/`."""

    serializer_class = ShadowDifferenceSerializer
    queryset = ShadowDifference.objects.all()
    spans_clusters = True
    filterset_class = ShadowDifferenceFilter
    keyset = ("-id",)

    @extend_schema(responses=ShadowDifferenceSerializer(many=True))
    def get(self, request: Request) -> Response:
        """List the workloads on which the schedulers differed, in the namespaces that the user may see, newest
        first.
        """
        found = ShadowDifference.objects.filter(self.reach.rows_in_namespaces())
        page = self.paginate_queryset(self.filter_queryset(found).values(*_FIELDS)) or []
        readers = readers_of(self.reach)
        for row in page:
            row["cluster"] = self.reach.name(row.pop("cluster_id"))
            for side in ("theirs", "ours"):
                row[side]["message"] = readers[row["cluster"]].message(row[side]["message"])
        return self.get_paginated_response(page)


def _hours(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= _MAX_HOURS):
        raise ValidationError({"hours": f"must be a whole number from 1 to {_MAX_HOURS}"})
    return int(text)
