"""Reads the metrics endpoints of a cluster: what devices and containers use."""

from __future__ import annotations

import logging
import time
from datetime import datetime
from http.client import HTTPException, HTTPResponse
from typing import Final
from urllib.parse import urlsplit

from accounts.models import Cluster
from accounts.outgoing import open_url
from gpus.services.telemetry import read_metrics, store_reading, together

_TIMEOUT_SECONDS: Final = 5.0
_MAX_BYTES: Final = 50_000_000

_log = logging.getLogger(__name__)


class ScrapeFailed(Exception):
    """An endpoint gave nothing readable. The message says what happened."""


def scrape(url: str, timeout_seconds: float = _TIMEOUT_SECONDS) -> str:
    """The text of a metrics endpoint, which must arrive completely within the timeout. Raises `ScrapeFailed`."""
    if urlsplit(url).scheme not in {"http", "https"}:
        raise ScrapeFailed(f"{url!r} is no http(s) URL")
    try:
        with open_url(url, timeout_seconds) as answer:
            return _read(answer, url, time.monotonic() + timeout_seconds).decode("utf-8", errors="replace")
    except (OSError, HTTPException) as error:  # URLError, HTTPError and time-outs are OSErrors
        raise ScrapeFailed(f"{url}: {error}") from error


def _read(answer: HTTPResponse, url: str, deadline: float) -> bytearray:
    content = bytearray()
    while piece := answer.read1(_MAX_BYTES):
        content += piece
        if len(content) >= _MAX_BYTES:
            raise ScrapeFailed(f"{url}: more than {_MAX_BYTES} bytes")
        if time.monotonic() > deadline:
            raise ScrapeFailed(f"{url}: the response did not end in time")
    return content


def sample_cluster(cluster: Cluster, now: datetime) -> int:
    """Store the samples of every endpoint of the cluster; returns how many there were.

    If an endpoint fails, its samples are missing; the other endpoints are read all the same.
    """
    readings = []
    for url in cluster.telemetry_urls:
        try:
            readings.append(read_metrics(scrape(url)))
        except (ScrapeFailed, ValueError) as error:
            _log.warning("cluster %s: no telemetry: %s", cluster.name, error)
    return store_reading(cluster.pk, together(readings), now)
