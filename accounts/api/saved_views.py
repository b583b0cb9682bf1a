"""`saved-views/`: the user's own saved views of lists."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, TypeVar

from django.contrib.auth.models import User
from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.generics import GenericAPIView
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.fields import Text
from accounts.api.if_match import if_match
from accounts.api.scope import json_object
from accounts.api.tokens import require_whole
from accounts.models import SavedView
from accounts.services.precondition import etag
from accounts.services.saved_views import change_view, delete_view, save_view, view_of, views_of
from foundation.exceptions import InvalidRequest, PreconditionFailed

PAGES: Final = ("workloads",)
"""The lists whose views can be saved."""
MAX_PARAMETERS: Final = 40
MAX_VALUE: Final = 2048
_Answer = TypeVar("_Answer")


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


class _OwnViews(GenericAPIView[SavedView]):
    """Base for views of the user's own saved views. No role in any cluster is needed."""

    permission_classes = [IsAuthenticated]
    serializer_class = SavedViewSerializer
    queryset = SavedView.objects.none()
    filter_backends = []
    keyset = ("page", "name", "id")

    def user(self) -> User:
        user = self.request.user
        assert isinstance(user, User)  # IsAuthenticated has refused anonymous users
        return user

    def checked(self, row: SavedView | None = None) -> Mapping[str, Any]:
        """Return the validated body. Raises ValidationError, and NotPermitted for a limited token."""
        require_whole(self.request)
        serializer = SavedViewSerializer(row, data=json_object(self.request.data), partial=row is not None)
        serializer.is_valid(raise_exception=True)
        values: Mapping[str, Any] = serializer.validated_data
        return values

    def answer(self, row: SavedView, code: int = status.HTTP_200_OK, **headers: str) -> Response:
        return Response(SavedViewSerializer(row).data, code, headers={"ETag": etag(row.generation), **headers})


class SavedViewListView(_OwnViews):
    """`saved-views/`."""

    def get_queryset(self) -> QuerySet[SavedView]:
        """Return the user's own saved views."""
        return views_of(self.user())

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
        return self.get_paginated_response(SavedViewSerializer(self.paginate_queryset(found), many=True).data)

    @extend_schema(responses={201: SavedViewSerializer}, operation_id="saved_views_create")
    def post(self, request: Request) -> Response:
        """Save a view under a new name."""
        values = self.checked()
        row = save_view(self.user(), values["page"], values["name"], values["search"])
        return self.answer(row, status.HTTP_201_CREATED, Location=f"{request.path}{row.pk}/")


class SavedViewView(_OwnViews):
    """`saved-views/{view_id}/`."""

    has_etag: ClassVar = True

    @extend_schema(responses=SavedViewSerializer, operation_id="saved_views_retrieve")
    def get(self, request: Request, view_id: int) -> Response:
        """Get one of your saved views."""
        return self.answer(view_of(self.user(), view_id))

    @extend_schema(responses=SavedViewSerializer, operation_id="saved_views_update")
    def patch(self, request: Request, view_id: int) -> Response:
        """Rename one of your saved views, or change its query."""
        changes = self.checked(view_of(self.user(), view_id))
        return self.answer(
            self._with_present_state(view_id, lambda: change_view(self.user(), view_id, changes, if_match(request)))
        )

    @extend_schema(responses={204: None}, operation_id="saved_views_delete")
    def delete(self, request: Request, view_id: int) -> Response:
        """Delete one of your saved views."""
        require_whole(request)
        self._with_present_state(view_id, lambda: delete_view(self.user(), view_id, if_match(request)))
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _with_present_state(self, view_id: int, write: Callable[[], _Answer]) -> _Answer:
        """Return the answer of a write. If its precondition fails, the error shows the current view."""
        try:
            return write()
        except PreconditionFailed as error:
            row = views_of(self.user()).filter(pk=view_id).first()
            error.current = None if row is None else SavedViewSerializer(row).data
            raise
