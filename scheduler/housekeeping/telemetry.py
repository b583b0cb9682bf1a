"""Reads the metrics endpoints of a cluster: the use of devices and containers."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from http.client import HTTPException, HTTPResponse
from itertools import zip_longest
from random import sample
from typing import Final
from urllib.parse import urlsplit

from accounts.models import Cluster
from foundation.outgoing import open_url, without_credentials
from gpus.services.telemetry import Reading, read_metrics, store_reading, together

_TIMEOUT_SECONDS: Final = 5.0
_MAX_BYTES: Final = 20_000_000
_AT_ONCE: Final = 8
"""Endpoints read in parallel, so that nodes that are switched off delay the others for seconds, not minutes."""
_RUN_SECONDS: Final = 10.0

_log = logging.getLogger(__name__)


class ScrapeFailed(Exception):
    """An endpoint returned nothing readable. The message has the cause."""


def scrape(url: str, timeout_seconds: float = _TIMEOUT_SECONDS) -> str:
    """Return the text of a metrics endpoint, which must arrive completely within the timeout. Raises `ScrapeFailed`."""
    shown = without_credentials(url)
    if urlsplit(url).scheme not in {"http", "https"}:
        raise ScrapeFailed(f"{shown!r} is not an http(s) URL")
    try:
        with open_url(url, timeout_seconds) as answer:
            return _read(answer, shown, time.monotonic() + timeout_seconds).decode("utf-8", errors="replace")
    except (OSError, HTTPException) as error:  # URLError, HTTPError and time-outs are OSErrors
        raise ScrapeFailed(f"{shown}: {error}") from error


def _read(answer: HTTPResponse, shown: str, deadline: float) -> bytearray:
    content = bytearray()
    while piece := answer.read1(_MAX_BYTES):
        content += piece
        if len(content) >= _MAX_BYTES:
            raise ScrapeFailed(f"{shown}: more than {_MAX_BYTES} bytes")
        if time.monotonic() > deadline:
            raise ScrapeFailed(f"{shown}: the response did not end in time")
    return content


def sample_clusters(
    clusters: Sequence[Cluster],
    now: datetime,
    *,
    read: Callable[[str], str] = scrape,
    at_once: int = _AT_ONCE,
    run_seconds: float = _RUN_SECONDS,
) -> int:
    """Store the samples of every endpoint of the clusters; return their number.

    If an endpoint fails, only its samples are missing; the other endpoints are still read. Clusters take turns, each
    with its endpoints in any order; `at_once` endpoints are read in parallel. Endpoints that are not reached within
    `run_seconds` wait for the next run, so that unresponsive endpoints do not delay other clusters.
    """
    until = time.monotonic() + run_seconds
    turns = [sample(cluster.telemetry_urls, len(cluster.telemetry_urls)) for cluster in clusters]
    with ThreadPoolExecutor(at_once) as pool:
        reading = [
            (cluster, pool.submit(_reading, cluster.name, url, until, read))
            for urls in zip_longest(*turns)
            for cluster, url in zip(clusters, urls, strict=True)
            if url is not None
        ]
    found = defaultdict[int, list[Reading]](list)
    for cluster, future in reading:
        if (each := future.result()) is not None:
            found[cluster.pk].append(each)
    return sum(store_reading(pk, together(readings), now) for pk, readings in found.items())


def _reading(cluster: str, url: str, until: float, read: Callable[[str], str]) -> Reading | None:
    try:
        if time.monotonic() > until:
            raise ScrapeFailed(f"{without_credentials(url)}: not reached in time; other addresses did not answer")
        return read_metrics(read(url))
    except (ScrapeFailed, ValueError) as error:
        _log.warning("cluster %s: no telemetry: %s", cluster, error)
        return None
