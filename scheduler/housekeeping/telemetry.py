"""Asks the metrics endpoints of a cluster what its devices and containers use."""

from __future__ import annotations

import logging
import time
from datetime import datetime
from http.client import HTTPException, HTTPResponse
from typing import Final
from urllib.parse import urlsplit

from accounts.models import Cluster
from accounts.outgoing import open_url
from gpus.services.telemetry import read_metrics, store_reading

_TIMEOUT_SECONDS: Final = 5.0
_MAX_BYTES: Final = 50_000_000

_log = logging.getLogger(__name__)


class ScrapeFailed(Exception):
    """An endpoint gave nothing that we can read. The message says what happened."""


def scrape(url: str, timeout_seconds: float = _TIMEOUT_SECONDS) -> str:
    """The text of a metrics endpoint, which must be there in time as a whole. Raises `ScrapeFailed`."""
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
            raise ScrapeFailed(f"{url}: its text does not come to an end")
    return content


def sample_cluster(cluster: Cluster, now: datetime) -> int:
    """Store what every endpoint of the cluster says; returns how many samples that were.

    An endpoint that fails leaves a gap: what was not measured stays absent. The others are asked all the same.
    """
    samples = 0
    for url in cluster.telemetry_urls:
        try:
            samples += store_reading(cluster.pk, read_metrics(scrape(url)), now)
        except (ScrapeFailed, ValueError) as error:
            _log.warning("cluster %s: no telemetry: %s", cluster.name, error)
    return samples
