"""Authenticates requests by the header `Authorization`: `Token ...` or `Bearer ...`."""

from typing import Any

from django.utils import timezone
from knox.auth import TokenAuthentication as KnoxTokenAuthentication
from rest_framework.authentication import get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import SAFE_METHODS

from accounts.services.actor import act_as
from accounts.services.tokens import note_use, scope_of_token, token_name

_SCHEMES = (b"token", b"bearer")


class TokenAuthentication(KnoxTokenAuthentication):  # type: ignore[misc]  # the library is not typed
    """Knox's authentication, which also accepts the scheme `Bearer`."""

    def authenticate(self, request: Any) -> Any:
        """Return the user and the token; None without a known scheme. Raises AuthenticationFailed."""
        scheme, _, token = get_authorization_header(request).partition(b" ")
        found = self.authenticate_header_value(scheme, token)
        if found is not None:
            # The name costs a query, so only requests that change something set it.
            name = "" if request.method in SAFE_METHODS else token_name(found[1])
            act_as(found[0].get_username(), f"token {name}".strip())
        return found

    def authenticate_header_value(self, scheme: bytes, token: bytes) -> Any:
        """Return the user and the token for a scheme and a token. Raises AuthenticationFailed."""
        if scheme.lower() not in _SCHEMES:
            return None
        return self.authenticate_credentials(token.strip())

    def authenticate_credentials(self, token: bytes) -> Any:
        """Return the user and the token with these bytes. Raises AuthenticationFailed."""
        if not token.isascii():  # knox encodes any text as UTF-8
            raise AuthenticationFailed("Invalid token.")
        return super().authenticate_credentials(token)

    def validate_user(self, auth_token: Any) -> Any:
        """Return the user and the token, and record that the token was used."""
        found = super().validate_user(auth_token)
        note_use(auth_token, timezone.now())
        found[0].token_scope = scope_of_token(auth_token)  # `access_of` cuts the user's rights to it
        return found
