"""A small OpenID Connect provider that speaks real HTTP: discovery, keys, authorization with PKCE, tokens, user info.

It logs in whoever the test says, without a page: its authorization endpoint redirects back at once. A test changes the
attributes to have it answer wrongly.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT_ID = "kueueweb"
CLIENT_SECRET = "known-to-both-0f9c2a"


def new_key() -> RSAKey:
    """A key under the one id that ID tokens name."""
    return RSAKey.generate_key(2048, {"kid": "one", "use": "sig"})


first_key = cache(new_key)  # it takes a while to make one


@dataclass
class OidcProvider:
    """`person` are the claims of who logs in; `wrong` replaces claims of the ID token (None: leaves one out)."""

    issuer: str = ""
    person: dict[str, Any] = field(default_factory=lambda: {"sub": "u-1", "preferred_username": "paula"})
    wrong: dict[str, Any] = field(default_factory=dict)
    in_user_info: tuple[str, ...] = ()
    """Claims that are left out of the ID token."""
    user_info_subject: str = ""
    denies: bool = False
    key: RSAKey = field(default_factory=first_key)
    signing_key: RSAKey | None = None
    """Another key than it publishes."""
    issuer_says: str = ""
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    access_tokens: set[str] = field(default_factory=set)
    asked: list[dict[str, str]] = field(default_factory=list)
    """The parameters of all authorization requests."""

    def discovery(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer_says or self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "jwks_uri": f"{self.issuer}/keys",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256", "none"],
            "code_challenge_methods_supported": ["S256"],
        }

    def authorize(self, asked: dict[str, str]) -> str:
        """Where the browser is sent back to."""
        self.asked.append(asked)
        if self.denies:
            return f"{asked['redirect_uri']}?{urlencode({'error': 'access_denied', 'state': asked['state']})}"
        code = secrets.token_urlsafe(16)
        self.codes[code] = asked
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"

    def token(self, form: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        """An ID token for a code: once, to the client that knows its secret and the verifier."""
        scheme, _, given = authorization.partition(" ")
        client, _, secret = base64.b64decode(given).decode().partition(":") if scheme == "Basic" else ("", "", "")
        if (unquote(client), unquote(secret)) != (CLIENT_ID, CLIENT_SECRET):
            return 401, {"error": "invalid_client"}
        asked = self.codes.pop(form.get("code", ""), None)
        if asked is None or form.get("redirect_uri") != asked["redirect_uri"]:
            return 400, {"error": "invalid_grant"}
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != asked["code_challenge"]:
            return 400, {"error": "invalid_grant", "error_description": "PKCE verification failed"}
        access_token = secrets.token_urlsafe(16)
        self.access_tokens.add(access_token)
        return 200, {"access_token": access_token, "token_type": "Bearer", "id_token": self._id_token(asked)}

    def user_info(self, authorization: str) -> tuple[int, dict[str, Any]]:
        if authorization.removeprefix("Bearer ") not in self.access_tokens:
            return 401, {"error": "invalid_token"}
        return 200, self.person | {"sub": self.user_info_subject or self.person["sub"]}

    def _id_token(self, asked: dict[str, str]) -> str:
        now = int(time.time())
        person = {name: value for name, value in self.person.items() if name not in self.in_user_info}
        claims = {"iss": self.issuer, "aud": CLIENT_ID, "iat": now, "exp": now + 300, "nonce": asked["nonce"]}
        claims |= person | self.wrong
        claims = {name: value for name, value in claims.items() if value is not None}
        return jwt.encode({"alg": "RS256", "kid": "one"}, claims, self.signing_key or self.key)


@contextmanager
def oidc_provider() -> Iterator[OidcProvider]:
    """Such a provider on a port of its own."""
    found = OidcProvider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            if parts.path == "/authorize":
                self.send_response(302)
                self.send_header("Location", found.authorize(_single(parts.query)))
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            if parts.path == "/userinfo":
                self._answer(*found.user_info(self.headers.get("Authorization", "")))
                return
            pages = {
                "/.well-known/openid-configuration": found.discovery(),
                "/keys": {"keys": [found.key.as_dict(private=False)]},
            }
            self._answer(200 if parts.path in pages else 404, pages.get(parts.path, {}))

        def do_POST(self) -> None:
            form = _single(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self._answer(*found.token(form, self.headers.get("Authorization", "")))

        def _answer(self, status: int, body: dict[str, Any]) -> None:
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.issuer = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()


def _single(query: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(query).items()}
