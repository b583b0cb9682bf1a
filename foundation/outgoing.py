"""Requests to URLs that users configured: webhooks of admission checks, telemetry.

Our processes can reach addresses that a tenant or the admin of one cluster cannot, such as the cloud's metadata
service, which hands out credentials. So the resolved address is checked, the connection goes to exactly that address (a
later DNS change has no effect), redirects are errors, and proxies of the environment, which would resolve the name
themselves, are ignored. One time-out covers the connection and the whole answer, so a server that trickles bytes cannot
hold a request longer than a silent one.
"""

from __future__ import annotations

import re
import socket
import ssl
import time
import urllib.request
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from django.conf import settings

Address = IPv4Address | IPv6Address
Resolve = Callable[..., Iterable[tuple[Any, Any, Any, Any, Any]]]

_METADATA: Final = frozenset(
    map(ip_address, ("100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254"))
)
"""Metadata services of clouds, which give a machine its keys, with addresses that are not link-local."""

_NAT64: Final = IPv6Network("64:ff9b::/96")
_SITE_LOCAL: Final = IPv6Network("fec0::/10")
"""Private, by a rule so old that `is_global` has forgotten it."""
_MAX_WORDS: Final = 1024
_CREDENTIALS: Final = re.compile(r"://[^/?#\s]*@")
HIDDEN_CREDENTIALS: Final = "://***@"


class AddressNotAllowed(OSError):
    """A host name resolves to forbidden addresses only."""


def open_url(request: urllib.request.Request | str, timeout_seconds: float) -> HTTPResponse:
    """Send the request (http or https) to an allowed address.

    Raises OSError (`AddressNotAllowed`, `URLError`, `HTTPError` also for a redirect) and `HTTPException`.
    """
    answer: HTTPResponse = _OPENER.open(_with_credentials(request), timeout=timeout_seconds)
    return answer


def open_public_url(request: urllib.request.Request, timeout_seconds: float) -> HTTPResponse:
    """Send a request as `open_url` does, to a URL that any user may set: private networks are reached only if
    OUTGOING_NETWORKS lists them."""
    answer: HTTPResponse = _PUBLIC_OPENER.open(_with_credentials(request), timeout=timeout_seconds)
    return answer


def without_credentials(url: str) -> str:
    """Return the URL with `***` in place of a user name and password."""
    return _CREDENTIALS.sub(HIDDEN_CREDENTIALS, url)


def _with_credentials(request: urllib.request.Request | str) -> urllib.request.Request:
    """Move the URL's user name and password into a header, because urllib takes them for a part of the host."""
    asked = urllib.request.Request(request) if isinstance(request, str) else request  # noqa: S310 (the opener's schemes)
    parts = urlsplit(asked.full_url)
    said, separator, place = parts.netloc.rpartition("@")
    if separator:
        asked.full_url = parts._replace(netloc=place).geturl()
        name, _, password = said.partition(":")
        word = b64encode(f"{unquote(name)}:{unquote(password)}".encode()).decode()
        asked.add_unredirected_header("Authorization", f"Basic {word}")
    return asked


def plain_words(said: object) -> str:
    """Return the text of an error or an answer, cleaned for storage and display."""
    return "".join(each if each.isprintable() else "?" for each in str(said)[:_MAX_WORDS])


def is_allowed(address: str, public_only: bool = False) -> bool:
    """Return whether requests may go to this IP address. If OUTGOING_NETWORKS is set, only its networks are allowed.
    Otherwise every address except metadata services is allowed, or only public addresses."""
    found = _plain(ip_address(address.partition("%")[0]))
    if settings.OUTGOING_NETWORKS:
        return any(found in ip_network(network) for network in settings.OUTGOING_NETWORKS)
    if found.is_link_local or found.is_multicast or found.is_unspecified or found.is_reserved:
        return False
    return found not in _METADATA and (not public_only or (found.is_global and found not in _SITE_LOCAL))


def _plain(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 address embeds."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address.sixtofour is not None:
            return address.sixtofour
        if address in _NAT64:
            return IPv4Address(int(address) & 0xFFFFFFFF)
    return address


class _TimedSocket(socket.socket):
    """A socket with one deadline for all its reads. Connecting and sending have a time-out each."""

    deadline = float("inf")

    def recv_into(self, *where: Any, **more: Any) -> int:
        self.settimeout(_left(self.deadline))
        return super().recv_into(*where, **more)


class _TimedTLSSocket(ssl.SSLSocket):
    """A TLS socket with one deadline for all its reads."""

    deadline = float("inf")

    def recv_into(self, *where: Any, **more: Any) -> int:
        self.settimeout(_left(self.deadline))
        return super().recv_into(*where, **more)


def _left(deadline: float) -> float:
    """Return the seconds left until the deadline. Raises TimeoutError if it has passed."""
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise TimeoutError("timed out")
    return seconds


def connect(
    host: str,
    port: int,
    timeout_seconds: float,
    resolve: Resolve = socket.getaddrinfo,
    public_only: bool = False,
    make: type[socket.socket] = _TimedSocket,
) -> socket.socket:
    """Connect to the first allowed address of the name that answers. The name is resolved once."""
    if not 0 < port < 2**16:
        raise OSError(f"{port} is not a port")
    deadline = time.monotonic() + timeout_seconds
    refusals: list[str] = []
    failure: OSError | None = None
    for family, kind, protocol, place in _places(host, port, resolve):
        if not is_allowed(place[0], public_only):
            refusals.append(place[0])
            continue
        opened = make(family, kind, protocol)
        try:
            opened.settimeout(_left(deadline))
            opened.connect(place)
        except OSError as error:
            opened.close()
            failure = error
            if time.monotonic() >= deadline:
                break
        else:
            if isinstance(opened, _TimedSocket):
                opened.deadline = deadline
            return opened
    if failure is not None:
        raise failure
    raise AddressNotAllowed(
        f"{host} is {', '.join(refusals) or 'no address'}: kueueweb sends no requests there. An operator "
        "of kueueweb can allow networks with OUTGOING_NETWORKS."
    )


def _places(host: str, port: int, resolve: Resolve) -> Iterator[tuple[Any, Any, Any, Any]]:
    for family, kind, protocol, _, place in resolve(host, port, 0, socket.SOCK_STREAM):
        yield family, kind, protocol, place


class _Connection(HTTPConnection):
    public_only = False

    def connect(self) -> None:
        self.sock = connect(self.host, self.port, self.timeout or 0, public_only=self.public_only)


class _PublicConnection(_Connection):
    public_only = True


class _TLSConnection(HTTPSConnection):
    public_only = False

    def connect(self) -> None:
        deadline = time.monotonic() + (self.timeout or 0)
        opened = connect(self.host, self.port, self.timeout or 0, public_only=self.public_only)
        context = ssl.create_default_context()
        context.sslsocket_class = _TimedTLSSocket
        try:
            opened.settimeout(_left(deadline))
            # The certificate is that of the name, whatever address it has.
            secured = context.wrap_socket(opened, server_hostname=self.host)
        except OSError:
            opened.close()
            raise
        assert isinstance(secured, _TimedTLSSocket)
        secured.deadline = deadline
        self.sock = secured


class _PublicTLSConnection(_TLSConnection):
    public_only = True


class _Plain(urllib.request.HTTPHandler):
    connection: type[_Connection] = _Connection

    def http_open(self, req: urllib.request.Request) -> HTTPResponse:
        return self.do_open(self.connection, req)


class _PublicPlain(_Plain):
    connection = _PublicConnection


class _TLS(urllib.request.HTTPSHandler):
    connection: type[_TLSConnection] = _TLSConnection

    def https_open(self, req: urllib.request.Request) -> HTTPResponse:
        return self.do_open(self.connection, req)


class _PublicTLS(_TLS):
    connection = _PublicTLSConnection


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Refuses redirects, which would lead to an address that was not configured."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _opener(*connections: urllib.request.BaseHandler) -> urllib.request.OpenerDirector:
    """Build an opener for http and https only. Python's default also handles ftp, file and data URLs."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        *connections,
        _NoRedirects(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.UnknownHandler(),
    ):
        opener.add_handler(handler)
    return opener


_OPENER: Final = _opener(_Plain(), _TLS())
_PUBLIC_OPENER: Final = _opener(_PublicPlain(), _PublicTLS())
