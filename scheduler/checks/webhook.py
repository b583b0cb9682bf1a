"""Admission checks that ask an HTTP service, such as a billing or security system, whether a workload may start.

An AdmissionCheck with the controller `kueueweb.io/webhook` names the URL in the annotation
`kueueweb.io/webhook-url`. While a workload holds quota and the check is Pending, the URL gets a POST that describes
the workload. Its answer, 200 with `{"state": "Ready" | "Retry" | "Rejected" | "Pending", "message",
"requeue_after_seconds", "pod_set_updates"}`, becomes the check's state.

Requests are signed: `X-Kueueweb-Signature: sha256=<hex HMAC of "<timestamp>.<body>">` with the key in
ADMISSION_CHECK_SIGNING_KEY and the timestamp in `X-Kueueweb-Timestamp`, so that the receiver can reject forged and
replayed requests.

If there is no answer in time, or another status, the request is repeated with a back-off, and the check's message
reports it. A workload is never admitted because a check could not be asked.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from http.client import HTTPException
from operator import itemgetter
from typing import Annotated, Any, Final

import msgspec
from django.conf import settings
from django.core.cache import cache

from accounts.models import Cluster
from foundation.exceptions import KueuewebError, ManifestErrors
from foundation.outgoing import AddressNotAllowed, open_url, plain_words
from queues.models import AdmissionCheck, Workload
from queues.services.admission_checks import WEBHOOK_CONTROLLER, CheckAnswer, set_check_state
from scheduling.model.quantity import format_amount
from scheduling.model.vocabulary import AdmissionCheckStatus

URL: Final = "kueueweb.io/webhook-url"
TIMEOUT: Final = "kueueweb.io/webhook-timeout-seconds"

_DEFAULT_TIMEOUT_SECONDS: Final = 5.0
_MAX_TIMEOUT_SECONDS: Final = 30.0
_MAX_ANSWER_BYTES: Final = 1_000_000
_BACKOFF_BASE_SECONDS: Final = 2.0
_MAX_BACKOFF_SECONDS: Final = 300.0
_ASK_AGAIN_SECONDS: Final = 10.0
"""The delay after the answer Pending."""

_RUN_SECONDS: Final = 15.0
_NUL: Final = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")

_log = logging.getLogger(__name__)


class WebhookAnswer(msgspec.Struct, frozen=True):
    """The body of an answer."""

    state: AdmissionCheckStatus
    message: str = ""
    requeue_after_seconds: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)] | None = None
    pod_set_updates: list[dict[str, Any]] = []


class WebhookFailed(Exception):
    """The URL gave no usable answer. The message describes the failure."""


class WebhookSilent(WebhookFailed):
    """The URL gave no answer at all."""


@dataclass(frozen=True, slots=True)
class Question:
    """One check of one workload that needs an answer."""

    cluster: Cluster
    check: AdmissionCheck
    workload: Workload

    @property
    def key(self) -> str:
        """The cache key of its next attempt. A new quota reservation starts again."""
        since = self.workload.quota_reserved_at
        return f"webhook-check:{self.check.pk}:{self.workload.pk}:{since.timestamp() if since else 0}"


def ask_pending(cluster: Cluster, now: float | None = None) -> int:
    """Call every webhook check that is due; return the number of answers.

    A check whose URL does not answer backs off as a whole. Otherwise each workload would take a full timeout, and
    checks with other URLs would wait for all of them. After `_RUN_SECONDS`, no more are called; the next run begins
    with the workload that was called longest ago.
    """
    now = time.time() if now is None else now
    answered, silent = 0, set[int]()
    until = time.monotonic() + _RUN_SECONDS
    turns = ((_turn(question.key), question) for question in pending_questions(cluster))
    for turn, question in sorted(turns, key=itemgetter(0)):
        check = question.check.pk
        if check in silent or now < turn or not _is_due(_silence(check), now):
            continue
        try:
            answered += _ask(question, now)
            cache.delete(_silence(check))
        except WebhookSilent:
            silent.add(check)
            _back_off(_silence(check), now)
        if time.monotonic() >= until:
            break
    return answered


def pending_questions(cluster: Cluster) -> Iterator[Question]:
    """Return the workloads that hold quota, with each of their Pending webhook checks."""
    checks = {
        row.name: row for row in AdmissionCheck.objects.filter(cluster=cluster, controller_name=WEBHOOK_CONTROLLER)
    }
    if not checks:
        return
    reserving = Workload.objects.filter(cluster=cluster, status="QuotaReserved", evicted_at=None)
    for workload in reserving.prefetch_related("pod_sets"):
        for state in workload.admission_check_states:
            check = checks.get(state["name"])
            if check is not None and state["state"] == AdmissionCheckStatus.PENDING:
                yield Question(cluster, check, workload)


def _silence(check: int) -> str:
    """Return the cache key that records that the URL of a check did not answer."""
    return f"webhook-check:{check}:silence"


def _is_due(key: str, now: float) -> bool:
    return now >= _turn(key)


def _turn(key: str) -> float:
    """Return the time from which on it may be called; 0 if it never was."""
    attempt = cache.get(key)
    return 0.0 if attempt is None else float(attempt["at"])


def _back_off(key: str, now: float) -> int:
    """Record another failure; returns the number of failures."""
    attempts = (cache.get(key) or {}).get("attempts", 0) + 1
    delay = min(_MAX_BACKOFF_SECONDS, _BACKOFF_BASE_SECONDS * 2.0 ** (min(attempts, 20) - 1))
    cache.set(key, {"at": now + delay, "attempts": attempts}, timeout=None)
    return int(attempts)


def _ask(question: Question, now: float) -> bool:
    """Ask once and store the answer. Raises `WebhookSilent` after recording that no answer came."""
    try:
        answer = post(question, now)
    except WebhookFailed as failure:
        attempts = _back_off(question.key, now)
        _log.warning("check %s of %s: attempt %d failed: %s", question.check, question.workload, attempts, failure)
        _store(question, CheckAnswer(AdmissionCheckStatus.PENDING, f"Attempt {attempts} failed: {failure}"), now)
        if isinstance(failure, WebhookSilent):
            raise
        return False
    cache.set(question.key, {"at": now + _ASK_AGAIN_SECONDS, "attempts": 0}, timeout=None)
    _store(
        question,
        CheckAnswer(answer.state, answer.message, answer.requeue_after_seconds, tuple(answer.pod_set_updates)),
        now,
    )
    return True


def _store(question: Question, answer: CheckAnswer, now: float) -> None:
    workload = question.workload
    name = question.check.name
    at = datetime.fromtimestamp(now, UTC)
    try:
        set_check_state(question.cluster, workload.namespace, workload.name, name, answer, actor=name, now=at)
    except ManifestErrors as error:
        _log.warning("check %s of %s: invalid answer: %s", name, workload, error)
        _store(question, CheckAnswer(AdmissionCheckStatus.PENDING, f"Invalid answer: {error}"), now)
    except KueuewebError as error:
        # The workload was cancelled or evicted during the request.
        _log.info("check %s of %s: the answer is no longer needed: %s", name, workload, error)


def post(question: Question, now: float) -> WebhookAnswer:
    """Ask the URL. Raises `WebhookFailed`; `WebhookSilent` if no answer came in time."""
    url = question.check.annotations.get(URL, "")
    if not url.startswith(("http://", "https://")):
        raise WebhookFailed(f"the annotation {URL} is not an http(s) URL: {url!r}")
    if not settings.ADMISSION_CHECK_SIGNING_KEY:
        raise WebhookFailed("kueueweb has no key to sign requests: set ADMISSION_CHECK_SIGNING_KEY")
    body = msgspec.json.encode(description(question))
    timestamp = str(int(now))
    headers = {
        "Content-Type": "application/json",
        "X-Kueueweb-Timestamp": timestamp,
        "X-Kueueweb-Signature": f"sha256={signature(timestamp, body)}",
    }
    try:
        request = urllib.request.Request(url, body, headers, method="POST")  # noqa: S310 (the scheme is checked above)
        with open_url(request, _timeout(question.check)) as answer:
            content = answer.read(_MAX_ANSWER_BYTES)
    except urllib.error.HTTPError as error:
        raise WebhookFailed(f"the answer was {error.code} {plain_words(error.reason)}") from error
    except (HTTPException, ValueError) as error:  # not HTTP, or not a valid URL
        raise WebhookFailed(f"the response cannot be read: {plain_words(error)}") from error
    except OSError as error:  # URLError and time-outs are OSErrors
        if isinstance(getattr(error, "reason", None), AddressNotAllowed):
            raise WebhookFailed(str(error.reason)) from error  # type: ignore[attr-defined]  # a URLError has one
        raise WebhookSilent(f"no answer: {plain_words(error)}") from error
    try:
        found = msgspec.json.decode(content, type=WebhookAnswer)
    except msgspec.DecodeError as error:
        raise WebhookFailed(f"the answer does not have the required form: {error}") from error
    if _NUL.search(content):
        raise WebhookFailed("the answer contains a NUL character, which is not allowed")
    return found


def signature(timestamp: str, body: bytes) -> str:
    """Return the hex HMAC-SHA256 of `timestamp.body`, with which the receiver authenticates a request."""
    key = settings.ADMISSION_CHECK_SIGNING_KEY.encode()
    return hmac.new(key, timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


def description(question: Question) -> Mapping[str, Any]:
    """Return the description of a workload in the request; amounts are Kubernetes quantities."""
    workload = question.workload
    return {
        "cluster": question.cluster.name,
        "check": question.check.name,
        "workload": {
            "namespace": workload.namespace,
            "name": workload.name,
            "uid": str(workload.uid),
            "queue_name": workload.queue_name,
            "cluster_queue": workload.cluster_queue_name,
            "priority": workload.priority,
            "priority_class": workload.priority_class_name,
            "submitted_by": workload.submitted_by,
            "labels": workload.labels,
            "annotations": workload.annotations,
            "pod_sets": [
                {
                    "name": pod_set.name,
                    "count": pod_set.admitted_count or pod_set.count,
                    "flavors": pod_set.flavors,
                    "resource_usage": {
                        name: format_amount(name, amount) for name, amount in pod_set.resource_usage.items()
                    },
                }
                for pod_set in workload.pod_sets.all()
            ],
        },
    }


def _timeout(check: AdmissionCheck) -> float:
    try:
        return min(_MAX_TIMEOUT_SECONDS, max(0.1, float(check.annotations.get(TIMEOUT, _DEFAULT_TIMEOUT_SECONDS))))
    except ValueError:
        return _DEFAULT_TIMEOUT_SECONDS
