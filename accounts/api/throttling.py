"""Limits how often a login may be tried."""

from hashlib import sha256
from typing import Final

from rest_framework.request import Request
from rest_framework.throttling import SimpleRateThrottle
from rest_framework.views import APIView

from foundation.client_addresses import counted_address

_KNOWN_SECONDS: Final = 30 * 24 * 3600


class AddressThrottle(SimpleRateThrottle):
    """Counts requests by client address, or by network for IPv6, where one customer has 2^64 addresses."""

    def get_ident(self, request: Request) -> str:
        # A server behind a Unix socket names no address: all its clients count as one.
        return counted_address(super().get_ident(request) or "")


class LoginThrottle(AddressThrottle):
    """Ten tries a minute for one user name from one address. A login that succeeds clears them."""

    scope = "login"
    rate = "10/min"

    def get_cache_key(self, request: Request, view: APIView) -> str | None:
        return f"throttle-login-{_who(request, self.get_ident(request))}"

    def forget(self, request: Request, view: APIView) -> None:
        """Reset the count after a correct password, and remember that the user is known from this address."""
        self.cache.delete(self.get_cache_key(request, view))
        self.cache.set(f"known-login-{_who(request, self.get_ident(request))}", True, _KNOWN_SECONDS)


class AddressLoginThrottle(AddressThrottle):
    """A hundred tries a minute from one address, whatever the user names."""

    scope = "login-address"
    rate = "100/min"

    def get_cache_key(self, request: Request, view: APIView) -> str | None:
        return f"throttle-login-{self.get_ident(request)}"


class NameLoginThrottle(AddressThrottle):
    """Limit the tries for one user name to a hundred an hour, over all addresses.

    Addresses from which the user has logged in lately are not counted, so that an attacker cannot lock a user out.
    """

    scope = "login-name"
    rate = "100/hour"

    def get_cache_key(self, request: Request, view: APIView) -> str | None:
        if self.cache.get(f"known-login-{_who(request, self.get_ident(request))}"):
            return None
        return f"throttle-login-name-{_who(request)}"


def _who(request: Request, address: str = "") -> str:
    """Return the user name, and the address if one is given, hashed: what a client types must not be a key of the
    cache.

    The login takes no notice of spaces around a name, so neither does the count.
    """
    data = request.data if isinstance(request.data, dict) else {}
    return sha256(f"{address} {str(data.get('username', '')).strip().casefold()}".encode()).hexdigest()
