"""Base classes of the views of named objects that belong to one user."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar

from django.contrib.auth.models import User
from django.db.models import QuerySet
from rest_framework import serializers, status
from rest_framework.generics import GenericAPIView
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.if_match import if_match
from accounts.api.scope import json_object
from accounts.api.tokens import require_whole
from accounts.services.own_objects import OwnObjects
from accounts.services.precondition import etag
from foundation.exceptions import PreconditionFailed

_Answer = TypeVar("_Answer")


class _OwnObjects(GenericAPIView[Any]):
    """Base for views of the user's own objects. No role in any cluster is needed."""

    objects: ClassVar[OwnObjects[Any]]
    permission_classes = [IsAuthenticated]
    filter_backends = []

    def user(self) -> User:
        user = self.request.user
        assert isinstance(user, User)  # IsAuthenticated has refused anonymous users
        return user

    def checked(self, row: Any = None) -> Mapping[str, Any]:
        """Return the validated body. Raises ValidationError, and NotPermitted for a limited token."""
        require_whole(self.request)
        serializer = self._serializer(row, data=json_object(self.request.data), partial=row is not None)
        serializer.is_valid(raise_exception=True)
        values: Mapping[str, Any] = serializer.validated_data
        return values

    def answer(self, row: Any, code: int = status.HTTP_200_OK, **headers: str) -> Response:
        return Response(self._serializer(row).data, code, headers={"ETag": etag(row.generation), **headers})

    def _serializer(self, *found: Any, **options: Any) -> serializers.BaseSerializer[Any]:
        """Return the serializer of requests and answers alike."""
        made: serializers.BaseSerializer[Any] = self.get_serializer_class()(*found, **options)
        return made


class OwnObjectListView(_OwnObjects):
    """Lists the user's own objects, and saves one under a new name."""

    def get_queryset(self) -> QuerySet[Any]:
        """Return the user's own objects."""
        return self.objects.of(self.user())

    def page(self, found: QuerySet[Any]) -> Response:
        """Answer with a page of objects."""
        return self.get_paginated_response(self._serializer(self.paginate_queryset(found), many=True).data)

    def save(self) -> Response:
        """Save the object of the body."""
        row = self.objects.save(self.user(), self.checked())
        return self.answer(row, status.HTTP_201_CREATED, Location=f"{self.request.path}{row.pk}/")


class OwnObjectView(_OwnObjects):
    """Gets, changes and deletes one of the user's own objects."""

    has_etag: ClassVar = True

    def read(self, object_id: int) -> Response:
        """Answer with the object."""
        return self.answer(self.objects.one(self.user(), object_id))

    def change(self, request: Request, object_id: int) -> Response:
        """Change the object by the body."""
        user = self.user()
        changes = self.checked(self.objects.one(user, object_id))
        return self.answer(
            self._with_present_state(
                object_id, lambda: self.objects.change(user, object_id, changes, if_match(request))
            )
        )

    def remove(self, request: Request, object_id: int) -> Response:
        """Delete the object."""
        require_whole(request)
        self._with_present_state(object_id, lambda: self.objects.delete(self.user(), object_id, if_match(request)))
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _with_present_state(self, object_id: int, write: Callable[[], _Answer]) -> _Answer:
        """Return the answer of a write. If its precondition fails, the error shows the current object."""
        try:
            return write()
        except PreconditionFailed as error:
            row = self.objects.of(self.user()).filter(pk=object_id).first()
            error.current = None if row is None else self._serializer(row).data
            raise
