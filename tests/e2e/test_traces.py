"""A submission over REST is one trace, told by four processes to an OTLP receiver."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.e2e.conftest import Api, Stack, wait_until

REQUEST: Final = "POST /api/v1/workloads/"
STEPS: Final = ["taken in", "decided", "pushed", "pods running"]


def told(stack: Stack) -> Iterator[tuple[str, Span]]:
    """Every span that has arrived, with the process that it is from."""
    for headers, body in list(stack.spans.asked):
        assert {name.lower(): value for name, value in headers.items()}["content-type"] == "application/x-protobuf"
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            attributes = {each.key: each.value.string_value for each in resource.resource.attributes}
            assert attributes["service.name"] == "kueueweb"
            for scope in resource.scope_spans:
                yield from ((attributes["process"], span) for span in scope.spans)


def attributes_of(span: Span) -> dict[str, str | int]:
    return {each.key: each.value.string_value or each.value.int_value for each in span.attributes}


def steps_of(stack: Stack, workload: str) -> dict[str, tuple[str, Span]]:
    """The steps of a workload by name."""
    found = list(told(stack))
    mine = [each for each in found if attributes_of(each[1]).get("kueueweb.workload") == workload]
    traces = {span.trace_id for _, span in mine}
    requests = [each for each in found if each[1].trace_id in traces and each[1].name == REQUEST]
    return {span.name: (process, span) for process, span in (*requests, *mine)}


def test_a_submission_is_one_trace_from_the_request_to_its_pods(stack: Stack, admin: Api) -> None:
    name = admin.submit("traced")
    wait_until(lambda: len(steps_of(stack, name)) == 1 + len(STEPS), stack.supervisor)
    admin.post(f"workloads/ai-research/{name}/cancel/", {})

    steps = steps_of(stack, name)
    _, request = steps.pop(REQUEST)
    spans = sorted((span for _, span in steps.values()), key=lambda span: (span.end_time_unix_nano, span.name))
    assert [span.name for span in spans] == STEPS
    assert {span.trace_id for span in spans} == {request.trace_id}
    assert {span.parent_span_id for span in spans} == {request.span_id}
    assert all(request.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano for span in spans)
    assert {step: process.removeprefix("kueueweb service ") for step, (process, _) in steps.items()} == {
        "taken in": "celery worker scheduler",
        "decided": "celery worker scheduler",
        "pushed": "celery worker push",
        "pods running": "watch_cluster",
    }
    assert attributes_of(request)["http.response.status_code"] == 201
    assert attributes_of(steps["decided"][1])["kueueweb.cluster_queue"]
    assert int(attributes_of(steps["decided"][1])["kueueweb.cycle"]) > 0
