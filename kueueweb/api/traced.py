"""The request's span in the trace of a submission."""

from collections.abc import Callable
from typing import Final

from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpRequest, HttpResponse

from foundation import tracing

Handler = Callable[[HttpRequest], HttpResponse]

_SUBMISSIONS: Final = ("/api/v1/workloads/", "/api/v1/manifests/")


def traced(handler: Handler) -> Handler:
    """Open a span for each request that may submit. Without a receiver, this middleware is not installed."""
    if not tracing.is_configured():
        raise MiddlewareNotUsed

    def handle(request: HttpRequest) -> HttpResponse:
        if request.method != "POST" or request.path_info not in _SUBMISSIONS:
            return handler(request)
        attributes = {"http.request.method": request.method, "url.path": request.path}
        name = f"{request.method} {request.path_info}"
        with tracing.request_span(name, request.headers.get("traceparent", ""), attributes) as span:
            response = handler(request)
            span.set_attribute("http.response.status_code", response.status_code)
            return response

    return handle
