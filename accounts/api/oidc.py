"""The two URLs that a browser visits to log in through the OpenID Connect provider: the start and the callback."""

import logging
from typing import Any, Final
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.auth import REDIRECT_FIELD_NAME, login
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET
from rest_framework.throttling import SimpleRateThrottle

from accounts.models import AuditVerb
from accounts.services.actor import act_as, tell_actor
from accounts.services.audit import record
from accounts.services.external_identities import LoginRefused, Refusal, user_of
from accounts.services.group_roles import apply_group_roles, read_group_roles
from accounts.services.oidc import Provider

CREDENTIAL: Final = "oidc"
_BACKEND: Final = "django.contrib.auth.backends.ModelBackend"

_log = logging.getLogger(__name__)


class _Throttle(SimpleRateThrottle):
    """Sixty login steps a minute from one address, because each calls the provider and may write a session."""

    scope = "oidc"
    rate = "60/min"

    def get_cache_key(self, request: Any, view: Any) -> str:
        return f"throttle-oidc-{self.get_ident(request)}"


@require_GET
@never_cache
def begin(request: HttpRequest) -> HttpResponse:
    """Redirect the browser to the provider."""
    try:
        provider = _provider(request)
        return HttpResponseRedirect(provider.login_url(request, _callback(request), _target(request)))
    except LoginRefused as refusal:
        return _refused(refusal)


@require_GET
@never_cache
def finish(request: HttpRequest) -> HttpResponse:
    """Open a session for the user whom the provider names. A refused login is audited with its reason."""
    try:
        provider = _provider(request)
        target = provider.target_of(request)
        claims = provider.claims(request)
        act_as(claims.who[:150], CREDENTIAL)
        tell_actor()
        apply_group_roles(read_group_roles(settings.OIDC_GROUP_ROLES))
        user = user_of(claims)
    except LoginRefused as refusal:
        record(AuditVerb.FAILED_LOGIN, "Session", name=refusal.who[:150], message=f"{refusal.reason}: {refusal}"[:1000])
        return _refused(refusal)
    act_as(user.get_username(), CREDENTIAL)
    login(request, user, backend=_BACKEND)
    return HttpResponseRedirect(target or settings.LOGIN_REDIRECT_URL)


def _provider(request: HttpRequest) -> Provider:
    if not settings.OIDC_ISSUER:
        raise Http404("No OpenID Connect provider is configured: OIDC_ISSUER is not set.")
    page: Any = request  # Django's request: the throttle needs only its address
    if not _Throttle().allow_request(page, page):
        raise LoginRefused(Refusal.THROTTLED, "too many logins from this address")
    return Provider()


def _callback(request: HttpRequest) -> str:
    path = reverse("oidc-callback")
    return (
        f"{settings.PUBLIC_URL}{path.removeprefix(settings.BASE_PATH)}"
        if settings.PUBLIC_URL
        else request.build_absolute_uri(path)
    )


def _target(request: HttpRequest) -> str:
    """Return the page to open after the login, which is always one of ours."""
    wanted = request.GET.get(REDIRECT_FIELD_NAME, "")
    own = wanted.startswith("/") and url_has_allowed_host_and_scheme(wanted, None)
    return wanted if own else settings.LOGIN_REDIRECT_URL


def _refused(refusal: LoginRefused) -> HttpResponse:
    _log.warning("A login by %s was refused: %s (%s)", settings.OIDC_ISSUER, refusal.message, refusal.reason)
    return HttpResponseRedirect(f"{settings.LOGIN_URL}?{urlencode({'refused': str(refusal.reason)})}")
