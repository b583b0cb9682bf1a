"""The device authorization grant (RFC 8628): a command line requests a login, and a logged-in person confirms it on
a page.

Requests are kept in the cache for ten minutes, under the hash of the command's code. The token is created when the
command fetches it, so that it is stored nowhere.
"""

import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from typing import Any, ClassVar, Final

from django.contrib.auth.models import User
from django.core.cache import cache

from foundation.exceptions import KueuewebError, NotFound

LIFETIME_SECONDS: Final = 600
INTERVAL_SECONDS: Final = 3
SLOWER_SECONDS: Final = 5
_LETTERS: Final = "BCDFGHJKLMNPQRSTVWXZ"
"""No vowels, so that codes contain no words, and no letter that looks like a digit (RFC 8628, section 6.1)."""
_HALF: Final = 4


class DeviceLoginError(KueuewebError):
    """The command line gets no token, or not yet. `oauth_error` is the error code of the RFC."""

    oauth_error: ClassVar[str] = ""


class AuthorizationPending(DeviceLoginError):
    """The user has not answered yet. Poll again after the interval."""

    reason = "AuthorizationPending"
    oauth_error = "authorization_pending"


class SlowDown(DeviceLoginError):
    """The command line polled within the interval, which grows by five seconds."""

    reason = "SlowDown"
    oauth_error = "slow_down"


class AccessDenied(DeviceLoginError):
    """The user refused."""

    reason = "AccessDenied"
    oauth_error = "access_denied"


class ExpiredToken(DeviceLoginError):
    """The user did not answer in time, or the code was used."""

    reason = "ExpiredToken"
    oauth_error = "expired_token"


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """A request for a token. `user_id` is set when a user confirms it, `denied` when a user refuses it."""

    user_code: str
    wish: dict[str, Any]
    """Name, scope, namespaces, clusters and days of the token."""
    address: str
    user_id: int | None = None
    denied: bool = False


def begin(wish: Mapping[str, Any], address: str) -> tuple[str, DeviceRequest]:
    """Create a request. Returns it and the secret code of the command line."""
    device_code = secrets.token_urlsafe(32)
    letters = "".join(secrets.choice(_LETTERS) for _ in range(2 * _HALF))
    request = DeviceRequest(f"{letters[:_HALF]}-{letters[_HALF:]}", dict(wish), address)
    _store(_hashed(device_code), request)
    cache.set(_user_key(request.user_code), _hashed(device_code), LIFETIME_SECONDS)
    return device_code, request


def find(user_code: str) -> DeviceRequest:
    """Return the request with the code that the user typed. Raises NotFound."""
    return _found(user_code)[1]


def answer(user_code: str, user: User, *, allow: bool) -> DeviceRequest:
    """Record the user's answer, once. Raises NotFound."""
    key, request = _found(user_code)
    if not cache.delete(_user_key(request.user_code)):
        raise _unknown()  # two answers at the same time
    request = replace(request, user_id=user.pk if allow else None, denied=not allow)
    _store(key, request)
    return request


def fetch(device_code: str) -> tuple[User, DeviceRequest]:
    """Return the user of the token, once. Raises AuthorizationPending, SlowDown, AccessDenied and ExpiredToken."""
    key = _hashed(device_code)
    content = cache.get(f"device-{key}")
    if content is None:
        raise ExpiredToken("The code has expired or has already been used. Log in again.")
    request = DeviceRequest(**content)
    if request.denied:
        raise AccessDenied("The login was refused in the browser.")
    if request.user_id is None:
        _require_patience(key)
        raise AuthorizationPending(f"{request.user_code} is not confirmed yet.")
    if not cache.delete(f"device-{key}"):
        raise ExpiredToken("The code has already been used. Log in again.")  # two requests at the same time
    user = User.objects.filter(pk=request.user_id, is_active=True).first()
    if user is None:
        raise AccessDenied("The account that confirmed the code is disabled.")
    return user, request


def _require_patience(key: str) -> None:
    """Raise SlowDown for a poll within the interval, and extend the interval (RFC 8628, 3.5)."""
    interval = cache.get(f"device-interval-{key}", INTERVAL_SECONDS)
    if not cache.add(f"device-asked-{key}", True, interval - 1):
        slower = interval + SLOWER_SECONDS
        cache.set(f"device-interval-{key}", slower, LIFETIME_SECONDS)
        cache.set(f"device-asked-{key}", True, slower - 1)
        raise SlowDown(f"Ask every {slower} seconds.")


def _found(user_code: str) -> tuple[str, DeviceRequest]:
    key = cache.get(_user_key(user_code))
    content = cache.get(f"device-{key}") if key else None
    if content is None:
        raise _unknown()
    return key, DeviceRequest(**content)


def _unknown() -> NotFound:
    return NotFound("No command line waits for this code. Codes expire after ten minutes; log in again for a new one.")


def _store(key: str, request: DeviceRequest) -> None:
    cache.set(f"device-{key}", asdict(request), LIFETIME_SECONDS)


def _user_key(user_code: str) -> str:
    letters = "".join(letter for letter in user_code.upper() if letter.isalnum())
    return f"device-code-{sha256(letters.encode()).hexdigest()}"


def _hashed(device_code: str) -> str:
    return sha256(device_code.encode()).hexdigest()
