"""Logs users in and out. `accounts.api.tokens` creates tokens."""

from typing import Any

from django.conf import settings
from django.contrib.auth import authenticate, login, logout
from django.contrib.auth.models import User
from django.utils.decorators import method_decorator
from django.views.decorators.csrf import csrf_protect, ensure_csrf_cookie
from drf_spectacular.utils import extend_schema
from knox.models import AuthToken
from rest_framework import serializers, status
from rest_framework.exceptions import APIException
from rest_framework.permissions import AllowAny, IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api.fields import Text
from accounts.api.throttling import AddressLoginThrottle, LoginThrottle, NameLoginThrottle
from accounts.models import AuditVerb, ClusterMode, Role
from accounts.services.access import access_of, bindings_of, clusters_of
from accounts.services.actor import act_as
from accounts.services.audit import record
from foundation.exceptions import NotPermitted


class InvalidCredentials(APIException):
    """No active account has this user name and this password."""

    status_code = status.HTTP_401_UNAUTHORIZED
    default_detail = "The user name or the password is wrong."
    default_code = "InvalidCredentials"


class CredentialsSerializer(serializers.Serializer[Any]):
    """A user name and a password."""

    username = Text(max_length=150)
    password = Text(max_length=1000, trim_whitespace=False, write_only=True)


class UserSerializer(serializers.Serializer[Any]):
    """The logged-in user."""

    username = serializers.CharField()
    is_cluster_admin = serializers.BooleanField(help_text="Whether the user is an admin of the cluster in `?cluster=`.")
    may_use_admin = serializers.BooleanField(help_text="Whether the user may open the pages below /admin/.")


class RoleSerializer(serializers.Serializer[Any]):
    """A role. Without a namespace or a cluster it applies to all of them."""

    role = serializers.ChoiceField([role.value for role in Role])
    namespace = serializers.CharField(allow_null=True)
    cohort = serializers.CharField(allow_null=True, help_text="For a queue-admin: the cohort below which it applies.")
    cluster = serializers.CharField(allow_null=True, help_text="null: all clusters.")


class ClusterSummarySerializer(serializers.Serializer[Any]):
    """A cluster that the user may see."""

    name = serializers.CharField()
    mode = serializers.ChoiceField([mode.value for mode in ClusterMode])


class DemoAccountSerializer(serializers.Serializer[Any]):
    """An account of the demo."""

    username = serializers.CharField()
    password = serializers.CharField()


class ProviderSerializer(serializers.Serializer[Any]):
    """A login by an OpenID Connect provider."""

    text = serializers.CharField(help_text="The label of the login button.")
    url = serializers.CharField(help_text="The address for the browser; `?next=` is the page to return to.")


class LoginMethodsSerializer(serializers.Serializer[Any]):
    """The available ways to log in."""

    password = serializers.BooleanField(help_text="Whether local accounts may log in by user name and password.")
    provider = ProviderSerializer(allow_null=True)


class SessionSerializer(serializers.Serializer[Any]):
    """The user of the session, and the clusters that they may see."""

    authenticated = serializers.BooleanField()
    user = UserSerializer(allow_null=True)
    roles = RoleSerializer(many=True)
    clusters = ClusterSummarySerializer(many=True)
    login_methods = LoginMethodsSerializer()
    demo_accounts = DemoAccountSerializer(many=True, required=False, help_text="Only in the demo.")


def session_of(request: Request) -> dict[str, Any]:
    """Return the session as JSON. It names no clusters to a visitor who is not logged in."""
    body: dict[str, Any] = {
        "authenticated": False,
        "user": None,
        "roles": [],
        "clusters": [],
        "login_methods": {
            "password": settings.LOCAL_LOGIN,
            "provider": {"text": settings.OIDC_BUTTON_TEXT, "url": f"{settings.BASE_PATH}/oidc/login/"}
            if settings.OIDC_ISSUER
            else None,
        },
    }
    if settings.DEMO:
        body["demo_accounts"] = list(settings.DEMO_ACCOUNTS)
    if not request.user.is_authenticated:
        return body
    access = access_of(request.user, request.query_params.get("cluster", "default"))
    roles = (
        bindings_of(request.user).order_by("namespace", "role").values("role", "namespace", "cohort", "cluster__name")
    )
    return body | {
        "authenticated": True,
        "user": {
            "username": access.username,
            "is_cluster_admin": access.is_cluster_admin,
            "may_use_admin": request.user.is_staff,
        },
        "roles": [
            {
                "role": row["role"],
                "namespace": row["namespace"] or None,
                "cohort": row["cohort"] or None,
                "cluster": row["cluster__name"],
            }
            for row in roles
        ],
        "clusters": list(clusters_of(request.user).values("name", "mode")),
    }


class SessionView(APIView):
    """GET session/: the user of the session. Answers visitors too, and sets the CSRF cookie that a login needs."""

    permission_classes = [AllowAny]

    @extend_schema(responses=SessionSerializer, operation_id="session_retrieve")
    @method_decorator(ensure_csrf_cookie)
    def get(self, request: Request) -> Response:
        """Get the user, their roles and the clusters."""
        return Response(session_of(request))


class PasswordView(APIView):
    """Base for views that take a user name and a password, with throttles against guessing."""

    authentication_classes = []
    permission_classes = [AllowAny]
    throttle_classes = [LoginThrottle, AddressLoginThrottle, NameLoginThrottle]

    def authenticated(self, request: Request) -> User:
        """Return the user with the name and password in the body. Raises InvalidCredentials."""
        if not settings.LOCAL_LOGIN:
            raise NotPermitted(
                "Local accounts are disabled. Log in with the provider, on the login page or with `kueueweb login`."
            )
        credentials = CredentialsSerializer(data=request.data)
        credentials.is_valid(raise_exception=True)
        user = authenticate(request, **credentials.validated_data)
        if not isinstance(user, User):
            raise InvalidCredentials
        LoginThrottle().forget(request, self)
        act_as(user.get_username(), "password")
        return user


@method_decorator(csrf_protect, name="dispatch")
class LoginView(PasswordView):
    """POST auth/login/: open a session for a browser. It needs the CSRF header, as it changes who the browser is."""

    @extend_schema(request=CredentialsSerializer, responses={200: SessionSerializer}, operation_id="auth_login")
    def post(self, request: Request) -> Response:
        """Log in with a user name and a password; answers with the session."""
        user = self.authenticated(request)
        login(request, user)
        return Response(session_of(request))


class LogoutView(APIView):
    """POST auth/logout/: end the session, or revoke the token that the request carries."""

    permission_classes = [IsAuthenticated]

    @extend_schema(request=None, responses={204: None}, operation_id="auth_logout")
    def post(self, request: Request) -> Response:
        """Log out."""
        if isinstance(request.auth, AuthToken):
            record(AuditVerb.LOGOUT, "Session", name=request.auth.user.get_username())
            request.auth.delete()
        else:
            logout(request)
        return Response(status=status.HTTP_204_NO_CONTENT)
