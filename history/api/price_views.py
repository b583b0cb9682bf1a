"""Prices over REST."""

from collections import Counter
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.fields import Text, Word
from accounts.api.if_match import if_match
from accounts.api.scope import ClusterView, json_object
from accounts.services.precondition import etag
from foundation.exceptions import PreconditionFailed
from history.models import Price
from history.services.prices import generation_of, read_prices, replace_prices


class PriceSerializer(serializers.Serializer[Any]):
    """The hourly price of a resource: per core, per GiB, or per unit of any other resource."""

    flavor = Text(
        max_length=253,
        allow_blank=True,
        default="",
        help_text="Empty: applies to every flavor without a price of its own.",
    )
    resource = Text(
        max_length=317,
        help_text="`device` is the price of a whole device; a slice is charged the larger of its shares.",
    )
    per_hour = serializers.DecimalField(max_digits=14, decimal_places=6, min_value=0)


class PricesSerializer(serializers.Serializer[Any]):
    """The prices of a cluster, in one currency."""

    currency = Word(r"^[A-Z]{3}$", allow_blank=True, help_text="ISO 4217, such as EUR.")
    prices = PriceSerializer(many=True)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Require one currency for all prices, and each price only once."""
        if attrs["prices"] and not attrs["currency"]:
            raise ValidationError({"currency": "Required value: the currency of the prices, such as EUR."})
        keys = Counter((price["flavor"], price["resource"]) for price in attrs["prices"])
        for (flavor, resource), times in keys.items():
            if times > 1:
                where = f" in flavor {flavor}" if flavor else ""
                raise ValidationError({"prices": f"Duplicate value: {resource}{where} has {times} prices."})
        return attrs


class PricesView(ClusterView):
    """`prices/`."""

    serializer_class = PricesSerializer
    queryset = Price.objects.none()
    has_etag = True
    writes_what_is_mirrored = False

    @extend_schema(responses=PricesSerializer)
    def get(self, request: Request) -> Response:
        """Return the price of an hour of each resource."""
        return self._answer()

    @extend_schema(request=PricesSerializer, responses=PricesSerializer)
    def put(self, request: Request) -> Response:
        """Replace the prices. Only a cluster admin may. With If-Match, only if the prices have not changed since they
        were read."""
        if not self.access.is_cluster_admin:
            raise PermissionDenied("Only a cluster admin can set prices.")
        serializer = PricesSerializer(data=json_object(request.data))
        serializer.is_valid(raise_exception=True)
        asked = serializer.validated_data
        try:
            replace_prices(self.cluster, asked["currency"], asked["prices"], if_match(request))
        except PreconditionFailed as error:
            prices = read_prices(self.cluster)
            error.current = prices | {"generation": generation_of(prices)}
            raise
        return self._answer()

    def _answer(self) -> Response:
        prices = read_prices(self.cluster)
        return Response(prices, headers={"ETag": etag(generation_of(prices))})
