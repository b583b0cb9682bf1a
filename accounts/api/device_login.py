"""Logs a command-line tool in through a web page (RFC 8628), so that the tool never sees a password."""

from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.auth.models import User
from drf_spectacular.utils import extend_schema
from knox.settings import knox_settings
from rest_framework import serializers, status
from rest_framework.permissions import AllowAny, IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.throttling import SimpleRateThrottle
from rest_framework.views import APIView

from accounts.api.fields import Text, TrueOrFalse
from accounts.api.throttling import AddressThrottle
from accounts.api.tokens import NewTokenSerializer, TokenWishSerializer, new_token, require_whole
from accounts.models import AuditVerb, TokenScope
from accounts.services import device_login
from accounts.services.actor import act_as
from accounts.services.audit import record


class DeviceThrottle(AddressThrottle):
    """Thirty requests a minute from one address."""

    scope = "device"
    rate = "30/min"

    def get_cache_key(self, request: Request, view: APIView) -> str | None:
        return f"throttle-device-{self.get_ident(request)}"


class CodeThrottle(SimpleRateThrottle):
    """Limit a user to twenty codes a minute, so that the code of another user's command line cannot be guessed."""

    scope = "device-code"
    rate = "20/min"

    def get_cache_key(self, request: Request, view: APIView) -> str | None:
        return f"throttle-device-code-{request.user.pk}"


class TokenThrottle(AddressThrottle):
    """Three hundred polls a minute from one address, enough for fifteen waiting command lines."""

    scope = "device-token"
    rate = "300/min"

    def get_cache_key(self, request: Request, view: APIView) -> str | None:
        return f"throttle-device-token-{self.get_ident(request)}"


class DeviceAskSerializer(TokenWishSerializer):
    """The token that a command line requests. The user sees this before they confirm."""

    name = Text(max_length=100, default="kueueweb", help_text="The name of the token.")


class DeviceCodesSerializer(serializers.Serializer[Any]):
    """The code and address to show to the user, and the code to poll with."""

    device_code = serializers.CharField(help_text="Secret of the command line.")
    user_code = serializers.CharField(help_text="The code that the user compares or types.")
    verification_uri = serializers.CharField()
    verification_uri_complete = serializers.CharField()
    expires_in = serializers.IntegerField(help_text="Lifetime in seconds.")
    interval = serializers.IntegerField(help_text="Seconds between two polls.")


class DeviceCodeSerializer(serializers.Serializer[Any]):
    """The secret code by which a command line polls."""

    device_code = Text(max_length=100)


class DeviceRequestSerializer(serializers.Serializer[Any]):
    """A command line that requests a token."""

    user_code = serializers.CharField()
    name = serializers.CharField(help_text="The name of the token.")
    address = serializers.CharField(help_text="The address of the request.")
    scope = serializers.ChoiceField([scope.value for scope in TokenScope])
    namespaces = serializers.ListField(
        child=serializers.CharField(), help_text="Only these namespaces; empty: all of the user's."
    )
    clusters = serializers.ListField(
        child=serializers.CharField(), help_text="Only these clusters; empty: all of the user's."
    )
    days = serializers.IntegerField(help_text="The lifetime of the token in days.")


class DeviceAnswerSerializer(serializers.Serializer[Any]):
    """The user's answer: confirm or refuse."""

    allow = TrueOrFalse()


class DeviceView(APIView):
    """`auth/device/`."""

    authentication_classes = []
    permission_classes = [AllowAny]
    throttle_classes = [DeviceThrottle]

    @extend_schema(request=DeviceAskSerializer, responses={201: DeviceCodesSerializer}, operation_id="auth_device")
    def post(self, request: Request) -> Response:
        """Start a login. Show the user the code and the address, and poll for the token."""
        asked = DeviceAskSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        code, found = device_login.begin(asked.validated_data, request.META.get("REMOTE_ADDR", ""))
        page = (
            f"{settings.PUBLIC_URL}/device"
            if settings.PUBLIC_URL
            else request.build_absolute_uri(f"{settings.BASE_PATH}/device")
        )
        body = {
            "device_code": code,
            "user_code": found.user_code,
            "verification_uri": page,
            "verification_uri_complete": f"{page}?{urlencode({'code': found.user_code})}",
            "expires_in": device_login.LIFETIME_SECONDS,
            "interval": device_login.INTERVAL_SECONDS,
        }
        return Response(body, status.HTTP_201_CREATED)


class DeviceTokenView(APIView):
    """`auth/device/token/`."""

    authentication_classes = []
    permission_classes = [AllowAny]
    throttle_classes = [TokenThrottle]

    @extend_schema(request=DeviceCodeSerializer, responses={201: NewTokenSerializer}, operation_id="auth_device_token")
    def post(self, request: Request) -> Response:
        """Return the token once the user has confirmed. Until then, and after a refusal, answer 400 with the `error`
        of RFC 8628."""
        asked = DeviceCodeSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        user, found = device_login.fetch(asked.validated_data["device_code"])
        act_as(user.get_username(), f"device code {found.user_code}")
        record(AuditVerb.LOGIN, "DeviceLogin", name=user.get_username(), message=_asked_for(found))
        return Response(new_token(user, found.wish), status.HTTP_201_CREATED)


class DeviceRequestView(APIView):
    """`auth/device/{user_code}/`."""

    permission_classes = [IsAuthenticated]
    throttle_classes = [CodeThrottle]

    @extend_schema(responses=DeviceRequestSerializer, operation_id="auth_device_retrieve")
    def get(self, request: Request, user_code: str) -> Response:
        """Return the command line that waits with this code."""
        found = device_login.find(user_code)
        most = knox_settings.TOKEN_TTL.days
        body = {**found.wish, "days": min(found.wish.get("days") or most, most)}
        body |= {"user_code": found.user_code, "address": found.address}
        return Response(DeviceRequestSerializer(body).data)

    @extend_schema(request=DeviceAnswerSerializer, responses={204: None}, operation_id="auth_device_answer")
    def post(self, request: Request, user_code: str) -> Response:
        """Confirm or refuse a login. If you confirm, the command line gets one of your tokens."""
        require_whole(request)
        given = DeviceAnswerSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        user = request.user
        if isinstance(user, User):
            found = device_login.answer(user_code, user, allow=given.validated_data["allow"])
            if found.denied:
                record(AuditVerb.REFUSED, "DeviceLogin", name=user.get_username(), message=_asked_for(found))
        return Response(status=status.HTTP_204_NO_CONTENT)


def _asked_for(found: device_login.DeviceRequest) -> str:
    """Describe the request for the audit."""
    return f"{found.wish['name']} at {found.address} asked for a token of scope {found.wish['scope']}"
