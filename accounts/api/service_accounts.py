"""Service accounts and their tokens. Only users who are cluster admins in every cluster manage them."""

from typing import Any
from uuid import UUID

from django.db.models import F, QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.fields import Text, Word
from accounts.api.scope import ClusterView
from accounts.api.tokens import NewTokenSerializer, TokenSerializer, TokenWishSerializer, created, new_token
from accounts.models import ServiceAccount
from accounts.services.access import access_of
from accounts.services.service_accounts import create_service_account, delete_service_account, service_account
from accounts.services.tokens import revoke_token, tokens_of


class ServiceAccountSerializer(serializers.Serializer[Any]):
    """A service account. Roles are bound to its name, as to a user's."""

    name = Word(r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=150)
    description = Text(max_length=200, default="", allow_blank=True)
    created_at = serializers.DateTimeField(read_only=True)


class _AccountsView(ClusterView):
    """Base for views of service accounts. They belong to no cluster, so a role in one cluster is not enough."""

    permission_classes = [IsAuthenticated]
    serializer_class: type[serializers.Serializer[Any]] = ServiceAccountSerializer
    queryset = ServiceAccount.objects.none()
    filter_backends = []
    kind = "ServiceAccount"

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Raise NotPermitted unless the user is an admin of every cluster."""
        super().initial(request, *args, **kwargs)
        access_of(request.user).require("submit", self.kind)


class ServiceAccountListView(_AccountsView):
    """`service-accounts/`."""

    keyset = ("name",)

    def rows(self) -> QuerySet[ServiceAccount, Any]:
        """Return all service accounts."""
        return ServiceAccount.objects.values("description", "created_at", name=F("user__username"))

    @extend_schema(responses=ServiceAccountSerializer(many=True), operation_id="service_accounts_list")
    def get(self, request: Request) -> Response:
        """List service accounts by name."""
        return self.get_paginated_response(self.paginate_queryset(self.rows()))

    @extend_schema(responses={201: ServiceAccountSerializer}, operation_id="service_accounts_create")
    def post(self, request: Request) -> Response:
        """Create a service account. It has no password and no roles."""
        wanted = ServiceAccountSerializer(data=request.data)
        wanted.is_valid(raise_exception=True)
        row = create_service_account(wanted.validated_data["name"], wanted.validated_data["description"])
        body = {"name": row.user.username, "description": row.description, "created_at": row.created_at}
        return Response(body, status.HTTP_201_CREATED, headers={"Location": f"{request.path}{row.user.username}/"})


class ServiceAccountView(_AccountsView):
    """`service-accounts/{name}/`."""

    @extend_schema(request=None, responses={204: None}, operation_id="service_accounts_delete")
    def delete(self, request: Request, name: str) -> Response:
        """Delete the service account, its tokens and its roles."""
        delete_service_account(name)
        return Response(status=status.HTTP_204_NO_CONTENT)


class ServiceAccountTokenListView(_AccountsView):
    """`service-accounts/{name}/tokens/`."""

    serializer_class = TokenSerializer
    keyset = ("-created_at", "id")

    @extend_schema(responses=TokenSerializer(many=True), operation_id="service_account_tokens_list")
    def get(self, request: Request, name: str) -> Response:
        """List the service account's tokens, newest first."""
        page = self.paginate_queryset(tokens_of(service_account(name).user, timezone.now()))
        return self.get_paginated_response(TokenSerializer(page, many=True).data)

    @extend_schema(
        request=TokenWishSerializer, responses={201: NewTokenSerializer}, operation_id="service_account_tokens_create"
    )
    def post(self, request: Request, name: str) -> Response:
        """Create a token for the service account."""
        return created(new_token(service_account(name).user, request.data), request.path)


class ServiceAccountTokenView(_AccountsView):
    """`service-accounts/{name}/tokens/{token_id}/`."""

    serializer_class = TokenSerializer

    @extend_schema(request=None, responses={204: None}, operation_id="service_account_tokens_revoke")
    def delete(self, request: Request, name: str, token_id: UUID) -> Response:
        """Revoke one of the service account's tokens."""
        revoke_token(service_account(name).user, token_id)
        return Response(status=status.HTTP_204_NO_CONTENT)
