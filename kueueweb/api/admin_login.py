"""Redirects the admin's login to ours, which is throttled."""

from urllib.parse import urlencode

from django.conf import settings
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_safe


@require_safe
def admin_login(request: HttpRequest) -> HttpResponseRedirect:
    """Redirect to our login page and back. Raises PermissionDenied for users who are logged in and may not use the
    admin site."""
    if request.user.is_authenticated:
        raise PermissionDenied("Your account may not use the admin site.")
    wanted = request.GET.get(REDIRECT_FIELD_NAME, "")
    own = url_has_allowed_host_and_scheme(wanted, {request.get_host()}, require_https=request.is_secure())
    query = urlencode({REDIRECT_FIELD_NAME: wanted if own else reverse("admin:index")})
    return HttpResponseRedirect(f"{settings.LOGIN_URL}?{query}")
