"""The device authorization grant (RFC 8628): a command line requests a login, and a logged-in person confirms it on
a page.

Requests are kept in the cache for ten minutes, under the hash of the command's code. The token is created when the
command fetches it, so that it is stored nowhere.
"""

import secrets
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Final

from django.contrib.auth.models import User
from django.core.cache import cache

from accounts.exceptions import KueuewebError, NotFound

LIFETIME_SECONDS: Final = 600
INTERVAL_SECONDS: Final = 3
_LETTERS: Final = "BCDFGHJKLMNPQRSTVWXZ"
"""No vowels, so that no words come out, and nothing that looks like a digit (RFC 8628, section 6.1)."""
_HALF: Final = 4


class AuthorizationPending(KueuewebError):
    """Nobody has answered yet: ask again after the interval."""

    reason = "AuthorizationPending"


class SlowDown(KueuewebError):
    """Asked again within the interval."""

    reason = "SlowDown"


class AccessDenied(KueuewebError):
    """The person said no."""

    reason = "AccessDenied"


class ExpiredToken(KueuewebError):
    """Nobody answered in time, or the code was used."""

    reason = "ExpiredToken"


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """Who asks. `user_id` is set when a person has said yes; `denied`, when no."""

    user_code: str
    name: str
    address: str
    user_id: int | None = None
    denied: bool = False


def begin(name: str, address: str) -> tuple[str, DeviceRequest]:
    """A new request, and the code that only its asker knows."""
    device_code = secrets.token_urlsafe(32)
    letters = "".join(secrets.choice(_LETTERS) for _ in range(2 * _HALF))
    request = DeviceRequest(f"{letters[:_HALF]}-{letters[_HALF:]}", name, address)
    _store(_hashed(device_code), request)
    cache.set(_user_key(request.user_code), _hashed(device_code), LIFETIME_SECONDS)
    return device_code, request


def find(user_code: str) -> DeviceRequest:
    """The request that a person has typed the code of. Raises NotFound."""
    return _found(user_code)[1]


def answer(user_code: str, user: User, *, allow: bool) -> None:
    """The person says yes or no, once. Raises NotFound."""
    key, request = _found(user_code)
    _store(key, DeviceRequest(request.user_code, request.name, request.address, user.pk if allow else None, not allow))
    cache.delete(_user_key(request.user_code))


def fetch(device_code: str) -> tuple[User, DeviceRequest]:
    """Whom the token is for, once. Raises AuthorizationPending, SlowDown, AccessDenied and ExpiredToken."""
    key = _hashed(device_code)
    content = cache.get(f"device-{key}")
    if content is None:
        raise ExpiredToken("The code has expired, or was used already. Log in again.")
    request = DeviceRequest(**content)
    if request.denied:
        raise AccessDenied("The login was refused in the browser.")
    if request.user_id is None:
        if not cache.add(f"device-asked-{key}", True, INTERVAL_SECONDS - 1):
            raise SlowDown(f"Ask every {INTERVAL_SECONDS} seconds.")
        raise AuthorizationPending(f"Nobody has confirmed {request.user_code} yet.")
    if not cache.delete(f"device-{key}"):
        raise ExpiredToken("The code was used already. Log in again.")  # two asked at once
    user = User.objects.filter(pk=request.user_id, is_active=True).first()
    if user is None:
        raise AccessDenied("The account that confirmed it is switched off.")
    return user, request


def _found(user_code: str) -> tuple[str, DeviceRequest]:
    key = cache.get(_user_key(user_code))
    content = cache.get(f"device-{key}") if key else None
    if content is None:
        raise NotFound("No command line waits with this code. Codes end after ten minutes; log in again for a new one.")
    return key, DeviceRequest(**content)


def _store(key: str, request: DeviceRequest) -> None:
    cache.set(f"device-{key}", asdict(request), LIFETIME_SECONDS)


def _user_key(user_code: str) -> str:
    letters = "".join(letter for letter in user_code.upper() if letter.isalnum())
    return f"device-code-{sha256(letters.encode()).hexdigest()}"


def _hashed(device_code: str) -> str:
    return sha256(device_code.encode()).hexdigest()
