"""Asks the metrics endpoints of a cluster what its cards and containers use."""

from __future__ import annotations

import logging
import urllib.request
from datetime import datetime
from http.client import HTTPException
from typing import Final
from urllib.parse import urlsplit

from gpus.services.telemetry import read_metrics, store_reading
from queues.models import Cluster

_TIMEOUT_SECONDS: Final = 5.0
_MOST_BYTES: Final = 50_000_000

_log = logging.getLogger(__name__)


class ScrapeFailed(Exception):
    """An endpoint gave nothing that we can read. The message says what happened."""


def scrape(url: str) -> str:
    """The text of a metrics endpoint. Raises `ScrapeFailed`."""
    if urlsplit(url).scheme not in {"http", "https"}:
        raise ScrapeFailed(f"{url!r} is no http(s) URL")
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_SECONDS) as answer:  # noqa: S310 (checked above)
            return str(answer.read(_MOST_BYTES).decode("utf-8", errors="replace"))
    except (OSError, HTTPException) as error:  # URLError, HTTPError and time-outs are OSErrors
        raise ScrapeFailed(f"{url}: {error}") from error


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
