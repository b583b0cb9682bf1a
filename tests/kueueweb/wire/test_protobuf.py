"""Bodies in protobuf, as typed Go clients send them, are read as the same objects in JSON."""

from __future__ import annotations

import base64
import json
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rest_framework.exceptions import ParseError, UnsupportedMediaType

from kueueweb.wire.encodings.protobuf import ProtobufParser, _fields
from queues.models import Job
from tests.api_client import SchemaClient

SAMPLES: Final = json.loads((Path(__file__).parent / "protobuf_samples.json").read_text())
"""Kind -> the body that client-go writes, in base64, and the object that it writes as JSON."""
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
JOBS: Final = "/apis/batch/v1/namespaces/team-a/jobs"


def body_of(kind: str) -> bytes:
    return base64.b64decode(SAMPLES[kind]["protobuf"])


def read(body: bytes) -> Any:
    return ProtobufParser().parse(BytesIO(body))


@pytest.mark.parametrize("kind", SAMPLES)
def test_an_object_is_that_of_json(kind: str) -> None:
    assert read(body_of(kind)) == SAMPLES[kind]["json"]


def test_a_job_is_stored(bob: SchemaClient) -> None:
    created = bob.post(JOBS, body_of("Job"), content_type=PROTOBUF)
    assert created.status_code == 201, created.content
    assert created.headers["Content-Type"] == "application/json"
    row = Job.objects.get(name="typed")
    assert (row.namespace, row.labels["kueue.x-k8s.io/queue-name"]) == ("team-a", "main")
    [container] = created.json()["spec"]["template"]["spec"]["containers"]
    assert container == SAMPLES["Job"]["json"]["spec"]["template"]["spec"]["containers"][0]
    read_again = bob.get(f"{JOBS}/typed", headers={"Accept": f"{PROTOBUF},application/json"})
    assert read_again.headers["Content-Type"] == "application/json"
    options = body_of("DeleteOptions")
    assert read(options)["propagationPolicy"] == "Background"
    gone = bob.generic("DELETE", f"{JOBS}/typed", options.decode("ascii"), content_type=PROTOBUF)
    assert gone.status_code == 200, gone.json()
    assert not Job.objects.filter(name="typed").exists()


def test_a_tenant_stores_nothing_elsewhere(bob: SchemaClient) -> None:
    refused = bob.post(JOBS.replace("team-a", "team-b"), body_of("Job"), content_type=PROTOBUF)
    assert (refused.status_code, refused.json()["reason"]) == (403, "Forbidden")
    assert not Job.objects.exists()


def test_other_kinds_are_sent_as_json(bob: SchemaClient) -> None:
    body = body_of("Namespace").replace(b"Namespace", b"Container")
    answer = bob.post(JOBS, body, content_type=PROTOBUF)
    assert (answer.status_code, answer.json()["reason"]) == (415, "UnsupportedMediaType")
    assert "application/json" in answer.json()["message"]


@given(st.data())
def test_damaged_bodies_are_mistakes(data: st.DataObject) -> None:
    body = bytearray(body_of("Job"))
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(4, len(body) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(4, len(body)))
    try:
        found = read(bytes(body[:cut]))
    except (ParseError, UnsupportedMediaType):
        return
    assert isinstance(found, dict)
    assert "\\u0000" not in json.dumps(found)


def test_a_number_of_more_than_64_bits_is_refused_like_any_wrong_number(bob: SchemaClient) -> None:
    job = body_of("Job")
    envelope = dict(_fields(job[4:]))
    meta, raw = bytes(envelope[1]), bytes(envelope[2])
    raw += b"\x12\x0b\x08" + b"\xff" * 9 + b"\x7f"  # spec.parallelism: ten bytes have 70 bits
    body = job[:4] + _message(1, meta) + _message(2, raw)
    refused = bob.post(JOBS, body, content_type=PROTOBUF)
    assert refused.status_code == 422, refused.content
    assert "parallelism" in refused.json()["message"]


def _message(number: int, content: bytes) -> bytes:
    size, length = bytearray(), len(content)
    while length >= 0x80:
        size.append(length & 0x7F | 0x80)
        length >>= 7
    size.append(length)
    return bytes([number << 3 | 2, *size]) + content
