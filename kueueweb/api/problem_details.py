"""Errors as RFC 9457 has them, for clients that request it: `Accept: application/problem+json`."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final

import orjson
from django.http import HttpRequest, HttpResponse
from django.urls import get_script_prefix
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.request import Request

from accounts.api.audited import REQUEST_ID_HEADER

PROBLEM: Final = "application/problem+json"
_JSON: Final = "application/json"

Handler = Callable[[HttpRequest], HttpResponse]


class ProblemNegotiation(DefaultContentNegotiation):
    """Clients that accept problem details get JSON where nothing failed."""

    def get_accept_list(self, request: Request) -> list[str]:
        """Return the media types that the client accepts, and JSON if problem details are among them."""
        accepted: list[str] = super().get_accept_list(request)
        return [*accepted, _JSON] if any(_names_problems(each) for each in accepted) else accepted


def problem_details(handler: Handler) -> Handler:
    """Add the members of RFC 9457 to an error of the REST API, and give it their media type, if the client accepts it.

    `reason`, `message` and `errors` stay. `instance` is the address of the audit's records of this request.
    """

    def handle(request: HttpRequest) -> HttpResponse:
        response = handler(request)
        if response.status_code >= HTTPStatus.BAD_REQUEST and _asks(request) and _is_json(response):
            body = orjson.loads(response.content)
            if isinstance(body, dict) and "reason" in body:
                response.content = orjson.dumps({**_members(response, body), **body})
                response.headers["Content-Type"] = PROBLEM
                response.headers["Content-Length"] = str(len(response.content))
        return response

    return handle


def _asks(request: HttpRequest) -> bool:
    accepted = request.headers.get("Accept", "").split(",")
    return request.path_info.startswith("/api/") and any(map(_names_problems, accepted))


def _names_problems(media_range: str) -> bool:
    return media_range.partition(";")[0].strip().lower() == PROBLEM


def _is_json(response: HttpResponse) -> bool:
    return not response.streaming and response.headers.get("Content-Type", "").partition(";")[0] == _JSON


def _members(response: HttpResponse, body: dict[str, Any]) -> dict[str, Any]:
    members: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(response.status_code).phrase,
        "status": response.status_code,
        "detail": body.get("message", ""),
    }
    if request_id := response.headers.get(REQUEST_ID_HEADER):
        members["instance"] = f"{get_script_prefix()}api/v1/audit/?request_id={request_id}"
    return members
