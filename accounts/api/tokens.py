"""Tokens for tools: made with a password, listed and revoked by their owner."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.generics import GenericAPIView
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api.session import CredentialsSerializer, PasswordView
from accounts.models import TokenDetails
from accounts.services.tokens import create_token, revoke_token, revoke_tokens, tokens_of


class TokenNameSerializer(serializers.Serializer[Any]):
    """What the token is for."""

    name = serializers.CharField(max_length=100, default="", allow_blank=True, help_text="What the token is for.")


class TokenCredentialsSerializer(CredentialsSerializer, TokenNameSerializer):
    """A user name, a password and a name for the token."""


class NewTokenSerializer(serializers.Serializer[Any]):
    """A token. It is shown this once; we keep only its hash."""

    id = serializers.UUIDField(help_text="By which it is revoked.")
    name = serializers.CharField()
    token = serializers.CharField()
    expiry = serializers.DateTimeField(allow_null=True, help_text="When it ends; null: when it is revoked.")


class TokenSerializer(serializers.Serializer[Any]):
    """What its owner sees of a token that was made before."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    created = serializers.DateTimeField()
    expiry = serializers.DateTimeField(allow_null=True, help_text="When it ends; null: when it is revoked.")
    last_used = serializers.DateTimeField(allow_null=True, help_text="To the minute; null: it has never been used.")


class TokenView(PasswordView):
    """POST auth/token/: a token for a tool."""

    @extend_schema(request=TokenCredentialsSerializer, responses={201: NewTokenSerializer}, operation_id="auth_token")
    def post(self, request: Request) -> Response:
        """Make a token with a user name and a password."""
        wanted = TokenNameSerializer(data=request.data)
        wanted.is_valid(raise_exception=True)
        token, row = create_token(self.authenticated(request), wanted.validated_data["name"])
        body = {"id": row.id, "name": row.name, "token": token, "expiry": row.token.expiry}
        return Response(NewTokenSerializer(body).data, status.HTTP_201_CREATED)


class TokenListView(GenericAPIView[TokenDetails]):
    """`auth/tokens/`: the tokens of whoever asks."""

    permission_classes = [IsAuthenticated]
    serializer_class = TokenSerializer
    filter_backends = []
    keyset = ("-created", "id")

    def get_queryset(self) -> QuerySet[TokenDetails, Any]:
        """Those that are still good, the newest first."""
        if not self.request.user.is_authenticated:  # the schema is made for nobody
            return TokenDetails.objects.none()
        return tokens_of(self.request.user, timezone.now())

    @extend_schema(responses=TokenSerializer(many=True), operation_id="auth_tokens_list")
    def get(self, request: Request) -> Response:
        """Your tokens, the newest first. The token itself is shown when it is made and never again."""
        page = self.paginate_queryset(self.get_queryset())
        return self.get_paginated_response(TokenSerializer(page, many=True).data)

    @extend_schema(request=None, responses={204: None}, operation_id="auth_tokens_revoke_all")
    def delete(self, request: Request) -> Response:
        """Revoke all your tokens, also the one that this request carries."""
        revoke_tokens(request.user)  # type: ignore[arg-type]  # IsAuthenticated has refused everybody else
        return Response(status=status.HTTP_204_NO_CONTENT)


class TokenDetailView(APIView):
    """`auth/tokens/{id}/`: one token of whoever asks."""

    permission_classes = [IsAuthenticated]

    @extend_schema(request=None, responses={204: None}, operation_id="auth_tokens_revoke")
    def delete(self, request: Request, id: UUID) -> Response:  # noqa: A002 (the name that the address has)
        """Revoke one of your tokens."""
        revoke_token(request.user, id)  # type: ignore[arg-type]  # IsAuthenticated has refused everybody else
        return Response(status=status.HTTP_204_NO_CONTENT)
