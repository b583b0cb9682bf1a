"""Tokens for tools: made with a password, listed and revoked by their owner."""

from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.generics import GenericAPIView
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api.fields import Text
from accounts.api.session import CredentialsSerializer, PasswordView
from accounts.models import TokenDetails, TokenScope
from accounts.services.token_scope import scope_of
from accounts.services.tokens import create_token, revoke_token, revoke_tokens, tokens_of
from foundation.exceptions import NotPermitted

MAX_DAYS: Final = 36_500
"""A hundred years. TOKEN_DAYS is the longest lifetime of a token; this is what a number may be."""
MAX_PLACES: Final = 100
"""Namespaces, and clusters, that a token may be limited to; every request with it reads them."""


class TokenWishSerializer(serializers.Serializer[Any]):
    """The purpose and the permissions of a token, which never exceed those of its user."""

    name = Text(max_length=100, default="", allow_blank=True, help_text="The purpose of the token.")
    scope = serializers.ChoiceField(
        [scope.value for scope in TokenScope],
        default=TokenScope.ADMINISTER.value,
        help_text=(
            "`metrics`: reads /metrics; `read`: reads everything; `submit`: also submits; `administer`: all "
            "permissions of its user."
        ),
    )
    namespaces = serializers.ListField(
        child=Text(max_length=63), default=list, max_length=MAX_PLACES, help_text="Only these namespaces; empty: all."
    )
    clusters = serializers.ListField(
        child=Text(max_length=63), default=list, max_length=MAX_PLACES, help_text="Only these clusters; empty: all."
    )
    days = serializers.IntegerField(
        min_value=1,
        max_value=MAX_DAYS,
        required=False,
        allow_null=True,
        help_text="The lifetime in days; at most, and by default, TOKEN_DAYS.",
    )


class TokenCredentialsSerializer(CredentialsSerializer, TokenWishSerializer):
    """A user name, a password and the purpose of the token."""


class NewTokenSerializer(serializers.Serializer[Any]):
    """A new token. It is shown only once; kueueweb stores only its hash."""

    id = serializers.UUIDField(help_text="The id by which the token is revoked.")
    name = serializers.CharField()
    token = serializers.CharField()
    expires_at = serializers.DateTimeField(
        allow_null=True, help_text="When the token expires; null: it does not expire."
    )
    scope = serializers.ChoiceField([scope.value for scope in TokenScope])
    namespaces = serializers.ListField(child=serializers.CharField())
    clusters = serializers.ListField(child=serializers.CharField())


def new_token(user: AbstractBaseUser, data: Any) -> dict[str, Any]:
    """Create the token that the body describes; it is shown only in this answer. Raises ValidationError and
    LimitReached.
    """
    wish = TokenWishSerializer(data=data)
    wish.is_valid(raise_exception=True)
    wanted: dict[str, Any] = dict(wish.validated_data)
    days = wanted.pop("days", None)
    token, row = create_token(user, **wanted, lifetime=timedelta(days=days) if days else None)
    found = {name: getattr(row, name) for name in ("id", "name", "scope", "namespaces", "clusters")}
    return dict(NewTokenSerializer({**found, "token": token, "expires_at": row.token.expiry}).data)


def created(token: dict[str, Any], address: str) -> Response:
    """Answer with a new token. The header Location is the address at which it is revoked, in its owner's list."""
    return Response(token, status.HTTP_201_CREATED, headers={"Location": f"{address}{token['id']}/"})


def require_whole(request: Request) -> None:
    """Raise NotPermitted for a token with fewer rights than its user: it cannot create or revoke others."""
    if not scope_of(request.user).is_whole:
        raise NotPermitted("This token is limited. To create or revoke tokens, log in or use a token without limits.")


class TokenSerializer(serializers.Serializer[Any]):
    """A token as its owner sees it after its creation."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(
        allow_null=True, help_text="When the token expires; null: it does not expire."
    )
    scope = serializers.ChoiceField([scope.value for scope in TokenScope])
    namespaces = serializers.ListField(child=serializers.CharField())
    clusters = serializers.ListField(child=serializers.CharField())
    last_used_at = serializers.DateTimeField(allow_null=True, help_text="To the minute; null: never used.")


class TokenView(PasswordView):
    """POST auth/token/: a token for a tool."""

    @extend_schema(request=TokenCredentialsSerializer, responses={201: NewTokenSerializer}, operation_id="auth_token")
    def post(self, request: Request) -> Response:
        """Create a token with a user name and a password."""
        TokenWishSerializer(data=request.data).is_valid(raise_exception=True)
        return created(
            new_token(self.authenticated(request), request.data), f"{settings.BASE_PATH}/api/v1/auth/tokens/"
        )


class TokenListView(GenericAPIView[TokenDetails]):
    """`auth/tokens/`: the tokens of the caller."""

    permission_classes = [IsAuthenticated]
    serializer_class = TokenSerializer
    filter_backends = []
    keyset = ("-created_at", "id")

    def get_queryset(self) -> QuerySet[TokenDetails, Any]:
        """Return the valid tokens, the newest first."""
        if not self.request.user.is_authenticated:  # the schema is made without a user
            return TokenDetails.objects.none()
        return tokens_of(self.request.user, timezone.now())

    @extend_schema(responses=TokenSerializer(many=True), operation_id="auth_tokens_list")
    def get(self, request: Request) -> Response:
        """List your tokens, newest first. The token itself is shown only when it is created."""
        page = self.paginate_queryset(self.get_queryset())
        return self.get_paginated_response(TokenSerializer(page, many=True).data)

    @extend_schema(request=TokenWishSerializer, responses={201: NewTokenSerializer}, operation_id="auth_tokens_create")
    def post(self, request: Request) -> Response:
        """Create a token for yourself, as the logged-in user."""
        require_whole(request)
        user: Any = request.user
        return created(new_token(user, request.data), request.path)

    @extend_schema(request=None, responses={204: None}, operation_id="auth_tokens_revoke_all")
    def delete(self, request: Request) -> Response:
        """Revoke all your tokens, including the one that this request uses."""
        require_whole(request)
        user: Any = request.user
        revoke_tokens(user)
        return Response(status=status.HTTP_204_NO_CONTENT)


class TokenDetailView(APIView):
    """`auth/tokens/{token_id}/`: one token of the caller."""

    permission_classes = [IsAuthenticated]

    @extend_schema(request=None, responses={204: None}, operation_id="auth_tokens_revoke")
    def delete(self, request: Request, token_id: UUID) -> Response:
        """Revoke one of your tokens."""
        require_whole(request)
        user: Any = request.user
        revoke_token(user, token_id)
        return Response(status=status.HTTP_204_NO_CONTENT)
