"""Logs users in through the OpenID Connect provider: authorization code flow with PKCE, state and nonce.

Authlib implements the protocol and checks the ID token: signature, issuer, audience, nonce and time. The provider's
metadata is read again for each login, so that new keys and addresses take effect at once. Logins are rare enough.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from authlib.common.errors import AuthlibBaseError
from authlib.integrations.django_client import DjangoOAuth2App, OAuth
from django.conf import settings
from django.http import HttpRequest
from joserfc.errors import JoseError
from requests import RequestException

from accounts.services.external_identities import Claims, LoginRefused, Refusal

_TIMEOUT_SECONDS: Final = 5
_LEEWAY_SECONDS: Final = 60
"""The accepted difference between the provider's clock and ours."""
_SIGNATURES: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signed with the provider's private key: neither `none`, nor a key that is shared."""

_AUTHENTICATES: Final = "token_endpoint_auth_method"
"""Authlib's parameter for how we show the provider who we are."""


class Provider:
    """The provider that the settings name."""

    def __init__(self) -> None:
        oauth = OAuth()
        self._app: DjangoOAuth2App = oauth.register(
            "oidc",
            client_id=settings.OIDC_CLIENT_ID,
            client_secret=settings.OIDC_CLIENT_SECRET or None,
            server_metadata_url=f"{settings.OIDC_ISSUER.rstrip('/')}/.well-known/openid-configuration",
            client_kwargs={
                "scope": " ".join(settings.OIDC_SCOPES),
                "code_challenge_method": "S256",
                "default_timeout": _TIMEOUT_SECONDS,
            },
        )

    def login_url(self, request: HttpRequest, callback: str, target: str) -> str:
        """Return the URL to send the browser to, and store in its session the values that the answer must match.
        Raises LoginRefused."""
        with _told_as_refusals():
            self._load()
            found = self._app.create_authorization_url(callback)
            self._app.save_authorize_data(request, redirect_uri=callback, target=target, **found)
        return str(found["url"])

    def target_of(self, request: HttpRequest) -> str:
        """Return the page that the user came from; empty if this browser began no login."""
        data = self._app.framework.get_state_data(request.session, request.GET.get("state", ""))
        return str(data["target"]) if data else ""

    def claims(self, request: HttpRequest) -> Claims:
        """Return the claims about the user from the provider's answer. Raises LoginRefused."""
        with _told_as_refusals():
            self._load()
            options = {
                "iss": {"essential": True, "value": settings.OIDC_ISSUER},
                "aud": {"essential": True, "value": settings.OIDC_CLIENT_ID},
                "sub": {"essential": True},
            }
            token = self._app.authorize_access_token(request, claims_options=options, leeway=_LEEWAY_SECONDS)
            said = token.get("userinfo")
            if not said:
                raise LoginRefused(Refusal.INVALID_ANSWER, "the provider's answer has no ID token")
            return _claims_of(self._with_user_info(token, dict(said)))

    def _load(self) -> None:
        """Read the provider's metadata, restricted to the algorithms that we accept."""
        metadata = self._app.load_server_metadata()
        if metadata.get("issuer") != settings.OIDC_ISSUER:
            message = (
                f"the provider's issuer is {metadata.get('issuer')!r}, but OIDC_ISSUER is {settings.OIDC_ISSUER!r}"
            )
            raise LoginRefused(Refusal.UNREACHABLE, message)
        offered = metadata.get("id_token_signing_alg_values_supported") or ["RS256"]
        metadata["id_token_signing_alg_values_supported"] = [name for name in offered if name in _SIGNATURES]
        methods = metadata.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        if not settings.OIDC_CLIENT_SECRET:
            metadata[_AUTHENTICATES] = "none"
        elif "client_secret_basic" not in methods and "client_secret_post" in methods:
            metadata[_AUTHENTICATES] = "client_secret_post"

    def _with_user_info(self, token: Mapping[str, Any], said: dict[str, Any]) -> dict[str, Any]:
        """Add the claims of the userinfo endpoint, because some providers keep the ID token small."""
        wanted = (settings.OIDC_USERNAME_CLAIM, settings.OIDC_GROUPS_CLAIM)
        complete = all(_found(said, claim) is not None for claim in wanted)
        if complete or not self._app.server_metadata.get("userinfo_endpoint"):
            return said
        more = dict(self._app.userinfo(token=token))
        if more.get("sub") != said["sub"]:
            raise LoginRefused(Refusal.INVALID_ANSWER, "the user info and the ID token have different subjects")
        return more | said


@contextmanager
def _told_as_refusals() -> Iterator[None]:
    try:
        yield
    except RequestException as error:
        raise LoginRefused(Refusal.UNREACHABLE, f"{settings.OIDC_ISSUER} does not answer: {error}") from error
    except AuthlibBaseError as error:
        reason = Refusal.CANCELLED if error.error == "access_denied" else Refusal.INVALID_ANSWER
        raise LoginRefused(reason, f"{error.error}: {error.description or ''}".rstrip(": ")[:500]) from error
    except (JoseError, ValueError, KeyError, TypeError) as error:  # the answer does not follow the protocol
        raise LoginRefused(Refusal.INVALID_ANSWER, f"{type(error).__name__}: {error}"[:500]) from error


def _claims_of(said: Mapping[str, Any]) -> Claims:
    subject = said["sub"]
    if not isinstance(subject, str) or not 0 < len(subject) <= 255:
        raise LoginRefused(Refusal.INVALID_ANSWER, "the subject is not a string of at most 255 characters")
    verified = said.get("email_verified", True) is not False
    return Claims(
        issuer=settings.OIDC_ISSUER,
        subject=subject,
        username=_text(_found(said, settings.OIDC_USERNAME_CLAIM)),
        email=_text(said.get("email")) if verified else "",
        first_name=_text(said.get("given_name")),
        last_name=_text(said.get("family_name")),
        groups=_words(_found(said, settings.OIDC_GROUPS_CLAIM)),
    )


def _found(said: Mapping[str, Any], claim: str) -> Any:
    """Return a claim by its name, or by a path with dots, as in Keycloak's `realm_access.roles`."""
    if claim in said:
        return said[claim]
    value: Any = said
    for part in claim.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _text(value: Any) -> str:
    return value.replace("\0", "") if isinstance(value, str) else ""


def _words(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return tuple(word for word in value if isinstance(word, str)) if isinstance(value, list) else ()
