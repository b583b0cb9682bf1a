"""The webhook in a thread of this process, over TLS, with certificates that it made, and a caller that checks them."""

from __future__ import annotations

import base64
import ssl
import threading
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

import orjson
import urllib3

from clusters.jobs.framework.context import JobContext
from clusters.jobs.framework.errors import FieldErrors
from clusters.jobs.framework.job_kind import JobKind
from clusters.webhook.admission import Admission, Standing, Surroundings
from clusters.webhook.application import WebhookApplication
from clusters.webhook.certificates import Certificates, renewed
from clusters.webhook.reviews import AdmissionRequest
from clusters.webhook.server import Registration, Served, WebhookServer
from gpus.vendors import VENDORS
from scheduling.model.vendor import DeviceVendor
from simulation.api.json_patch import apply_json_patch
from simulation.server import listen
from tests.patience import PATIENCE_SECONDS

JsonObject = dict[str, Any]
HOST = "127.0.0.1"


class FixedSurroundings:
    """Surroundings that a test decides about."""

    def __init__(self, context: JobContext, standing: Standing = Standing.UNKNOWN, trusted: Sequence[str] = ()) -> None:
        self.trusted = frozenset(trusted)
        self.current = context
        self.known = standing
        self.observing = False
        self.serving = False

    def observes_only(self) -> bool:
        return self.observing

    def serves_kueue(self) -> bool:
        return self.serving

    def context(self) -> JobContext:
        return self.current

    def vendors(self) -> Sequence[DeviceVendor]:
        return VENDORS

    def standing(self, kind: JobKind, job: JsonObject) -> Standing:
        return self.known

    def submitter_notes(self, request: AdmissionRequest, job: JsonObject) -> JsonObject:
        return {}

    def submitter_of(self, job: JsonObject) -> str:
        return ""

    def policy_errors(self, request: AdmissionRequest, context: JobContext) -> FieldErrors:
        return []


class ServedWebhook:
    """A context manager; `review` sends one AdmissionReview and gives the response of the answer."""

    def __init__(
        self,
        surroundings: Surroundings,
        registration: Registration | None = None,
        certificates: Certificates | None = None,
        port: int = 0,
        callers: bytes | None = None,
    ) -> None:
        self.certificates = certificates or renewed(None, [HOST], datetime.now(UTC))
        self._socket = listen(HOST, port)
        self.port = self._socket.getsockname()[1]
        self.url = f"https://{HOST}:{self.port}"
        application = WebhookApplication(Admission(surroundings))
        asked = None if callers is None else lambda: callers
        self.server = WebhookServer(application, self._socket, self._current, registration, 1, callers=asked)
        self._thread = threading.Thread(target=self.server.run, name="webhook")
        self._pool = checking_pool(self.certificates.authorities)

    def _current(self) -> Served:
        found = self.certificates
        return Served(found.certificate, found.key, found.authorities)

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.clear()
        self.server.stop()
        self._thread.join()
        self._socket.close()

    def is_healthy(self) -> bool:
        return bool(self._pool.request("GET", f"{self.url}/healthz").status == 200)

    def review(
        self, path: str, operation: str, obj: JsonObject, old: JsonObject | None = None, *, user: str = "alice"
    ) -> JsonObject:
        group, _, version = obj["apiVersion"].rpartition("/")
        request = {
            "uid": str(uuid.uuid4()),
            "kind": {"group": group, "version": version, "kind": obj["kind"]},
            "namespace": obj["metadata"].get("namespace", ""),
            "name": obj["metadata"].get("name", ""),
            "operation": operation,
            "userInfo": {"username": user},
            "object": obj,
            "oldObject": old,
        }
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
        answer = self._pool.request("POST", self.url + path, body=orjson.dumps(review))
        assert answer.status == 200, answer.data
        response: JsonObject = orjson.loads(answer.data)["response"]
        assert response["uid"] == request["uid"]
        return response


def checking_pool(authorities: bytes) -> urllib3.PoolManager:
    """A client that trusts these authorities alone, as the API server does with a caBundle."""
    context = ssl.create_default_context(cadata=authorities.decode())
    return urllib3.PoolManager(ssl_context=context, retries=False, timeout=PATIENCE_SECONDS)


def patched(obj: JsonObject, response: JsonObject) -> JsonObject:
    """The object as the API server keeps it after an answer of a mutating webhook."""
    if "patch" not in response:
        return obj
    assert response["patchType"] == "JSONPatch"
    return apply_json_patch(obj, orjson.loads(base64.b64decode(response["patch"])))
