"""`saved-views/`: the user's own saved views of lists."""

from collections.abc import Mapping
from typing import ClassVar, Final

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.fields import Text
from accounts.api.own.own_object_views import OwnObjectListView, OwnObjectView
from accounts.models import SavedView
from accounts.services.own_objects import SAVED_VIEWS
from foundation.exceptions import InvalidRequest

PAGES: Final = ("workloads",)
"""The lists whose views can be saved."""
MAX_PARAMETERS: Final = 40
MAX_VALUE: Final = 2048


class SavedViewSerializer(serializers.ModelSerializer[SavedView]):
    """A saved view of a list: a name, and the query string of the page."""

    page = serializers.ChoiceField(PAGES)
    name = Text(max_length=60)
    search = serializers.DictField(child=Text(max_length=MAX_VALUE, allow_blank=True), help_text="{parameter: value}")

    class Meta:
        model = SavedView
        fields = ["id", "page", "name", "search", "generation", "updated_at"]
        read_only_fields = ["generation", "updated_at"]

    def validate_page(self, value: str) -> str:
        """Refuse to move a view to another page, which has other filters."""
        if self.instance is not None and value != self.instance.page:
            raise ValidationError("field is immutable. Save a new view of that page.")
        return value

    def validate_search(self, value: Mapping[str, str]) -> Mapping[str, str]:
        """Limit the length of the query."""
        if len(value) > MAX_PARAMETERS:
            raise ValidationError(f"Too many: {len(value)} parameters; at most {MAX_PARAMETERS} are allowed.")
        if any(not name or len(name) > 63 for name in value):
            raise ValidationError("The name of a parameter must have 1 to 63 characters.")
        return value


class SavedViewListView(OwnObjectListView):
    """`saved-views/`."""

    objects: ClassVar = SAVED_VIEWS
    serializer_class = SavedViewSerializer
    queryset = SavedView.objects.none()
    keyset = ("page", "name", "id")

    @extend_schema(
        parameters=[OpenApiParameter("page", str, enum=PAGES, description="Only views of this list.")],
        responses=SavedViewSerializer(many=True),
        operation_id="saved_views_list",
    )
    def get(self, request: Request) -> Response:
        """List your saved views by page and name."""
        found = self.get_queryset()
        if (page := request.query_params.get("page")) is not None:
            if page not in PAGES:
                raise InvalidRequest(f"page: Unsupported value: {page!r}: use one of {', '.join(PAGES)}.")
            found = found.filter(page=page)
        return self.page(found)

    @extend_schema(responses={201: SavedViewSerializer}, operation_id="saved_views_create")
    def post(self, request: Request) -> Response:
        """Save a view under a new name."""
        return self.save()


class SavedViewView(OwnObjectView):
    """`saved-views/{view_id}/`."""

    objects: ClassVar = SAVED_VIEWS
    serializer_class = SavedViewSerializer
    queryset = SavedView.objects.none()

    @extend_schema(responses=SavedViewSerializer, operation_id="saved_views_retrieve")
    def get(self, request: Request, view_id: int) -> Response:
        """Get one of your saved views."""
        return self.read(view_id)

    @extend_schema(responses=SavedViewSerializer, operation_id="saved_views_update")
    def patch(self, request: Request, view_id: int) -> Response:
        """Rename one of your saved views, or change its query."""
        return self.change(request, view_id)

    @extend_schema(responses={204: None}, operation_id="saved_views_delete")
    def delete(self, request: Request, view_id: int) -> Response:
        """Delete one of your saved views."""
        return self.remove(request, view_id)
