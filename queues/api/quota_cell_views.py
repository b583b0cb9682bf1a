"""The quotas of a ClusterQueue or Cohort in one flavor, changed cell by cell, so that two concurrent edits both
count."""

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.if_match import if_match
from accounts.api.scope import ClusterView, json_object
from accounts.services.precondition import etag
from foundation.exceptions import PreconditionFailed
from queues.api.quota_cells import change_cells, flavor_cells
from queues.kinds import KINDS
from queues.models import ClusterQueue, Cohort
from queues.services.configuration import objects
from queues.services.owners import require_edit


class QuotaAmountsSerializer(serializers.Serializer[Any]):
    """The amounts of one resource, as Kubernetes quantities."""

    nominal_quota = serializers.CharField()
    borrowing_limit = serializers.CharField(allow_null=True, help_text="Null: no limit.")
    lending_limit = serializers.CharField(allow_null=True, help_text="Null: no limit.")


class QuotasInFlavorSerializer(serializers.Serializer[Any]):
    """The quotas in one flavor, by resource."""

    resources = serializers.DictField(child=QuotaAmountsSerializer())
    generation = serializers.IntegerField(
        read_only=True, help_text="The generation of the object that the quotas belong to."
    )


class ChangedQuotaAmountsSerializer(serializers.Serializer[Any]):
    """The amounts of one resource to change; omitted amounts keep their values."""

    nominal_quota = serializers.CharField(required=False)
    borrowing_limit = serializers.CharField(required=False, allow_null=True, help_text="Null: no limit.")
    lending_limit = serializers.CharField(required=False, allow_null=True, help_text="Null: no limit.")


class ChangedQuotasInFlavorSerializer(serializers.Serializer[Any]):
    """The quotas to change in one flavor, by resource."""

    resources = serializers.DictField(child=ChangedQuotaAmountsSerializer())


class FlavorQuotasView(ClusterView):
    """`cluster-queues/{name}/quotas/{flavor}/`, and of cohorts."""

    kind: ClassVar[str]
    serializer_class = QuotasInFlavorSerializer
    has_etag: ClassVar = True

    def get(self, request: Request, name: str, flavor: str) -> Response:
        """Return the quotas in one flavor. The ETag is that of the ClusterQueue or cohort. You need permission to
        change it.
        """
        require_edit(self.access, self.cluster, self.kind, name)
        row = objects(self.cluster, KINDS[self.kind]).filter(name=name).first()
        if row is None:
            raise self.missing(self.kind, name)
        return self._answer(row, flavor)

    @extend_schema(request=ChangedQuotasInFlavorSerializer)
    def patch(self, request: Request, name: str, flavor: str) -> Response:
        """Change the amounts of the quotas in the body. Other quotas and omitted amounts stay."""
        require_edit(self.access, self.cluster, self.kind, name)
        try:
            row = change_cells(
                self.cluster,
                KINDS[self.kind],
                name,
                flavor,
                json_object(request.data),
                actor=self.access.username,
                precondition=if_match(request),
            )
        except PreconditionFailed as error:
            error.current = self._body(objects(self.cluster, KINDS[self.kind]).get(name=name), flavor)
            raise
        return self._answer(row, flavor)

    def _body(self, row: Any, flavor: str) -> dict[str, Any]:
        return {"resources": flavor_cells(KINDS[self.kind], row, flavor), "generation": row.generation}

    def _answer(self, row: Any, flavor: str) -> Response:
        return Response(self._body(row, flavor), headers={"ETag": etag(row.generation)})


class ClusterQueueQuotasView(FlavorQuotasView):
    """Quotas of a ClusterQueue in a flavor."""

    kind = "ClusterQueue"
    queryset = ClusterQueue.objects.none()


class CohortQuotasView(FlavorQuotasView):
    """Quotas of a Cohort in a flavor."""

    kind = "Cohort"
    queryset = Cohort.objects.none()
