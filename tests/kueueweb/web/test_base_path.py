"""The product below a path of a host that it shares, and in the frames of a portal."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from http.cookiejar import CookieJar
from typing import Any, Final
from urllib.error import HTTPError
from urllib.request import HTTPCookieProcessor, HTTPRedirectHandler, OpenerDirector, Request, build_opener

import pytest
from django.contrib.auth.models import User
from websockets.exceptions import InvalidHandshake
from websockets.sync.client import connect
from websockets.typing import Origin

from kueueweb.embedded.sockets import free_port
from tests.acceptance.processes import Processes, wait_for
from tests.factories import make_cluster
from tests.services_plugin import short_temporary_folder

pytestmark = pytest.mark.django_db(transaction=True)

PREFIX: Final = "/team/kueueweb"
PORTAL: Final = "https://portal.example.org"


class _Stay(HTTPRedirectHandler):
    """Shows redirects instead of following them."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Visitor:
    """Requests with the cookies that were set, as a browser sends them."""

    def __init__(self, server: str) -> None:
        self.server = server
        self.cookies = CookieJar()
        self._opener: OpenerDirector = build_opener(HTTPCookieProcessor(self.cookies), _Stay())

    def ask(self, path: str, body: object = None) -> tuple[int, dict[str, str], str]:
        token = next((cookie.value for cookie in self.cookies if cookie.name == "csrftoken"), "") or ""
        headers = {"Content-Type": "application/json", "X-CSRFToken": token, "Referer": self.server}
        data = None if body is None else json.dumps(body).encode()
        try:
            answer = self._opener.open(Request(f"{self.server}{path}", data, headers), timeout=60)
        except HTTPError as error:
            answer = error
        with answer:
            return (
                answer.status,
                {name.title(): value for name, value in answer.headers.items()},
                answer.read().decode(),
            )


@pytest.fixture
def visitor() -> Iterator[Visitor]:
    make_cluster()
    User.objects.create_superuser("admin", password="admin")
    port = free_port()
    with short_temporary_folder() as folder, Processes(folder) as processes:
        processes.settings = {
            "BASE_PATH": f"{PREFIX}/", "FRAME_ANCESTORS": PORTAL, "DEMO": "true", "SERVE_UNCOLLECTED_STATIC": "true",
        }  # fmt: skip
        processes.start("web", "manage.py", "serve", "--host", "127.0.0.1", "--port", str(port))
        found = Visitor(f"http://127.0.0.1:{port}")
        wait_for("an answer", lambda: answers(found))
        yield found


def answers(visitor: Visitor) -> bool:
    try:
        return visitor.ask("/healthz")[0] == 200  # probes are beside the path, as they come past the proxy
    except OSError:
        return False


def test_all_of_it_is_below_the_path(visitor: Visitor) -> None:
    status, headers, page = visitor.ask(f"{PREFIX}/workloads")
    assert status == 200
    assert f'name="base-path" content="{PREFIX}"' in page
    links = re.findall(r'(?:src|href)="(/[^"]+)"', page)
    assert links
    assert all(link.startswith(f"{PREFIX}/static/") for link in links)
    assert visitor.ask(links[-1])[0] == 200
    assert headers["Content-Security-Policy"].count(f"frame-ancestors {PORTAL}") == 1
    assert "X-Frame-Options" not in headers
    assert {cookie.path for cookie in visitor.cookies} == {f"{PREFIX}/"}

    status, headers, _ = visitor.ask(f"{PREFIX}/admin/")
    assert (status, headers["Location"]) == (302, f"{PREFIX}/admin/login/?next={PREFIX}/admin/")
    status, headers, _ = visitor.ask(headers["Location"])
    assert headers["Location"].startswith(f"{PREFIX}/login?next=")

    assert visitor.ask(f"{PREFIX}/api/v1/auth/login/", {"username": "admin", "password": "admin"})[0] == 200
    assert {cookie.path for cookie in visitor.cookies if cookie.name == "sessionid"} == {f"{PREFIX}/"}
    status, headers, body = visitor.ask(f"{PREFIX}/api/v1/session/")
    assert (status, json.loads(body)["authenticated"]) == (200, True)
    assert headers["Cache-Control"] == "no-store"
    status, headers, _ = visitor.ask(f"{PREFIX}/api/v1/auth/tokens/", {"name": "mine"})
    assert headers["Location"].startswith(f"{PREFIX}/api/v1/auth/tokens/")
    status, _, page = visitor.ask(f"{PREFIX}/admin/")
    assert status == 200
    assert f'href="{PREFIX}/static/admin/' in page

    cookies = "; ".join(f"{cookie.name}={cookie.value}" for cookie in visitor.cookies)
    address = visitor.server.replace("http:", "ws:")
    with connect(
        f"{address}{PREFIX}/ws/live/?cluster=default",
        additional_headers={"Cookie": cookies},
        origin=Origin(visitor.server),
    ) as socket:
        assert socket.ping().wait(60), "it lives"
    with pytest.raises(InvalidHandshake):
        connect(
            f"{address}/ws/live/?cluster=default", additional_headers={"Cookie": cookies}, origin=Origin(visitor.server)
        )

    for beside in ("/workloads", "/api/v1/session/", f"{PREFIX}x/", "/static/favicon.svg"):
        assert visitor.ask(beside)[0] == 404
    assert [visitor.ask(path)[1]["Location"] for path in ("/", PREFIX)] == [f"{PREFIX}/"] * 2
