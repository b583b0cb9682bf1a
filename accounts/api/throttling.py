"""How often a login may be tried."""

from hashlib import sha256

from rest_framework.request import Request
from rest_framework.throttling import SimpleRateThrottle
from rest_framework.views import APIView


class LoginThrottle(SimpleRateThrottle):
    """Ten tries a minute for one user name from one address: guessing is slow, and nobody can lock out another.

    Who gets in has not been guessing: the tries up to then are forgotten.
    """

    scope = "login"
    rate = "10/min"

    def get_cache_key(self, request: Request, view: APIView) -> str | None:
        """The address and the user name, hashed: what a client types must not be a key of the cache."""
        data = request.data if isinstance(request.data, dict) else {}
        who = f"{self.get_ident(request)} {str(data.get('username', '')).casefold()}"
        return f"throttle-login-{sha256(who.encode()).hexdigest()}"

    def forget(self, request: Request, view: APIView) -> None:
        """The password was right: the next tries count from none."""
        self.cache.delete(self.get_cache_key(request, view))


class AddressLoginThrottle(SimpleRateThrottle):
    """A hundred tries a minute from one address, whatever the user names."""

    scope = "login-address"
    rate = "100/min"

    def get_cache_key(self, request: Request, view: APIView) -> str | None:
        """The address."""
        return f"throttle-login-{self.get_ident(request)}"
