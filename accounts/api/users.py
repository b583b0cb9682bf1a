"""Users, their groups and their tokens; for those who are cluster admins in every cluster."""

from typing import Any, Final
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers, status
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.fields import Text, TrueOrFalse
from accounts.api.scope import ClusterView, json_object
from accounts.api.tokens import TokenSerializer
from accounts.services.access import access_of
from accounts.services.tokens import revoke_token, tokens_of
from accounts.services.users import change_user, create_user, user_named, users

ORIGINS = ("local", "provider", "machine")
_MAX_GROUPS: Final = 1000


class UserRowSerializer(serializers.Serializer[Any]):
    """A user."""

    username = serializers.CharField()
    origin = serializers.ChoiceField(
        ORIGINS,
        help_text="`local`: with a password here; `provider`: by single sign-on; `machine`: a service account.",
    )
    is_active = serializers.BooleanField(help_text="false: disabled, logged out and without valid tokens.")
    is_superuser = serializers.BooleanField(help_text="Whether the user has all permissions, regardless of roles.")
    email = serializers.CharField()
    groups = serializers.ListField(child=serializers.CharField())
    last_login_at = serializers.DateTimeField(allow_null=True, help_text="The last login in a browser; null: never.")
    created_at = serializers.DateTimeField()


class NewUserSerializer(serializers.Serializer[Any]):
    """A local account. Roles are bound to its name."""

    username = Text(max_length=150)
    password = Text(max_length=1000, trim_whitespace=False, write_only=True)
    email = serializers.EmailField(default="", allow_blank=True, max_length=254)


class UserChangeSerializer(serializers.Serializer[Any]):
    """The fields to change; omitted fields keep their values."""

    is_active = TrueOrFalse(required=False, help_text="false: disable the account and invalidate its tokens.")
    password = Text(max_length=1000, trim_whitespace=False, required=False, help_text="Only for a local account.")
    groups = serializers.ListField(
        child=Text(max_length=150),
        required=False,
        max_length=_MAX_GROUPS,
        help_text="The complete list of groups; those of a single sign-on user come from the provider.",
    )


class _UsersView(ClusterView):
    """Users belong to no cluster: a role in a cluster is not enough."""

    permission_classes = [IsAuthenticated]
    serializer_class: type[serializers.Serializer[Any]] = UserRowSerializer
    queryset = User.objects.none()
    filter_backends = []
    kind = "User"

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Raises NotPermitted for everybody but admins of every cluster."""
        super().initial(request, *args, **kwargs)
        access_of(request.user).require("submit", self.kind)


class UserListView(_UsersView):
    """`users/`."""

    keyset = ("username",)

    @extend_schema(
        parameters=[OpenApiParameter("search", str, description="A substring of the user name.")],
        responses=UserRowSerializer(many=True),
        operation_id="users_list",
    )
    def get(self, request: Request) -> Response:
        """List all users by name, including single sign-on users and service accounts."""
        found: QuerySet[User] = users()
        if search := request.query_params.get("search", ""):
            found = found.filter(username__icontains=search)
        return self.get_paginated_response([_json(row) for row in self.paginate_queryset(found) or []])

    @extend_schema(request=NewUserSerializer, responses={201: UserRowSerializer}, operation_id="users_create")
    def post(self, request: Request) -> Response:
        """Create a local account without roles."""
        wanted = NewUserSerializer(data=json_object(request.data))
        wanted.is_valid(raise_exception=True)
        values = wanted.validated_data
        create_user(values["username"], values["password"], values["email"])
        row = user_named(User.normalize_username(values["username"]))
        return Response(_json(row), status.HTTP_201_CREATED, headers={"Location": f"{request.path}{row.username}/"})


class UserView(_UsersView):
    """`users/{name}/`."""

    @extend_schema(responses=UserRowSerializer, operation_id="users_retrieve")
    def get(self, request: Request, name: str) -> Response:
        """Return one user."""
        return Response(_json(user_named(name)))

    @extend_schema(request=UserChangeSerializer, responses=UserRowSerializer, operation_id="users_change")
    def patch(self, request: Request, name: str) -> Response:
        """Disable or enable the account, or set its password or its groups."""
        wanted = UserChangeSerializer(data=json_object(request.data))
        wanted.is_valid(raise_exception=True)
        actor: Any = request.user
        return Response(_json(change_user(actor, name, wanted.validated_data)))


class UserTokenListView(_UsersView):
    """`users/{name}/tokens/`."""

    serializer_class = TokenSerializer
    keyset = ("-created_at", "id")

    @extend_schema(responses=TokenSerializer(many=True), operation_id="user_tokens_list")
    def get(self, request: Request, name: str) -> Response:
        """List the user's valid tokens, newest first; never the token itself."""
        page = self.paginate_queryset(tokens_of(user_named(name), timezone.now()))
        return self.get_paginated_response(TokenSerializer(page, many=True).data)


class UserTokenView(_UsersView):
    """`users/{name}/tokens/{token_id}/`."""

    serializer_class = TokenSerializer

    @extend_schema(request=None, responses={204: None}, operation_id="user_tokens_revoke")
    def delete(self, request: Request, name: str, token_id: UUID) -> Response:
        """Revoke one of the user's tokens."""
        revoke_token(user_named(name), token_id)
        return Response(status=status.HTTP_204_NO_CONTENT)


def _json(user: User) -> dict[str, Any]:
    machine = hasattr(user, "service_account")
    return {
        "username": user.username,
        "origin": "machine" if machine else "provider" if user.external_identities.all() else "local",
        "is_active": user.is_active,
        "is_superuser": user.is_superuser,
        "email": user.email,
        "groups": sorted(group.name for group in user.groups.all()),
        "last_login_at": user.last_login,
        "created_at": user.date_joined,
    }
