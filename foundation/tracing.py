"""OpenTelemetry spans of a submission, from its request to its pods, if OTEL_EXPORTER_OTLP_ENDPOINT is set.

The request's context travels in the workload's row (`Workload.traceparent`), in W3C's format. Each process records its
steps as children of the request. Without an endpoint rows have no context, and no process looks for one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Final

from django.conf import settings

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, Tracer

_HEADER: Final = "traceparent"
_NANOSECONDS: Final = 1_000_000_000
_current: ContextVar[str] = ContextVar("traceparent", default="")

Attributes = Mapping[str, str | int]


def is_configured() -> bool:
    """Return whether an endpoint for spans is configured."""
    return bool(settings.TRACES_ENDPOINT)


def current_traceparent() -> str:
    """Return the context of this thread's request; "" if it is not sampled or no endpoint is configured."""
    return _current.get()


@contextmanager
def request_span(name: str, traceparent: str, attributes: Attributes) -> Iterator[Span]:
    """The span of a request, a child of the caller's span if the request brings its context."""
    from opentelemetry.trace import SpanKind

    kind = SpanKind.SERVER
    with _tracer().start_as_current_span(name, _context(traceparent), kind=kind, attributes=attributes) as span:
        token = _current.set(_traceparent(span))
        try:
            yield span
        finally:
            _current.reset(token)


def record(name: str, traceparent: str, started: datetime, ended: datetime, attributes: Attributes) -> None:
    """Record a finished step as a child of the request."""
    span = _tracer().start_span(name, _context(traceparent), attributes=attributes, start_time=_nanoseconds(started))
    span.end(_nanoseconds(max(started, ended)))


def _nanoseconds(at: datetime) -> int:
    return int(at.timestamp() * _NANOSECONDS)


def _context(traceparent: str) -> Context:
    from opentelemetry.context import Context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    return TraceContextTextMapPropagator().extract({_HEADER: traceparent}, Context())


def _traceparent(span: Span) -> str:
    from opentelemetry.trace import set_span_in_context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    if not span.get_span_context().trace_flags.sampled:
        return ""
    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier, set_span_in_context(span))
    return carrier.get(_HEADER, "")


@cache
def _tracer() -> Tracer:
    """Create the tracer. Its own thread sends spans in batches; the exporter reads the other OTEL_* variables."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    process = settings.DATABASES["default"]["OPTIONS"]["application_name"]
    resource = Resource.create({SERVICE_NAME: "kueueweb", SERVICE_VERSION: settings.RELEASE, "process": process})
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider.get_tracer("kueueweb", settings.RELEASE)
