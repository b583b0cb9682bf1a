"""deploy/monitoring asks for nothing that /metrics does not have. `make test-monitoring` evaluates the alerts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from accounts.models import Cluster
from tests.api_client import SchemaClient
from tests.scheduler.api.metrics.comparison import not_given
from tests.scheduler.api.metrics.kueue_families import KUEUE_FAMILIES

FOLDER = Path(__file__).parents[4] / "deploy" / "monitoring"
_METRIC = re.compile(r"\b(?:kueue|kueueweb|hami)_[a-z_]+")
_SUFFIXES = ("_bucket", "_sum", "_count", "_total")


def rules() -> Iterator[str]:
    for group in yaml.safe_load((FOLDER / "rules.yaml").read_text())["groups"]:
        for rule in group["rules"]:
            yield rule["expr"]


def panels() -> Iterator[str]:
    for path in sorted(FOLDER.glob("grafana-*.json")):
        board = json.loads(path.read_text())
        for panel in board["panels"]:
            yield from (target["expr"] for target in panel["targets"])
        for variable in board["templating"]["list"]:
            if variable["type"] == "query":
                yield variable["query"]["query"]


def without_suffix(name: str) -> str:
    return next((name.removesuffix(suffix) for suffix in _SUFFIXES if name.endswith(suffix)), name)


@pytest.mark.django_db
def test_every_metric_that_is_asked_for_is_there(vera: SchemaClient, cluster: Cluster) -> None:
    text = vera.get("/metrics").content.decode()
    families = {family.name for family in text_string_to_metric_families(text)}
    families |= KUEUE_FAMILIES.keys() - not_given().keys()  # a scrape names no family of Kueue's without samples
    expressions = [*rules(), *panels()]
    asked = {name for expression in expressions for name in _METRIC.findall(expression)}
    assert len(asked) > 20
    assert {name for name in asked if not {name, without_suffix(name)} & families} == set()


def test_every_alert_is_tested() -> None:
    alerts = {
        rule["alert"]
        for group in yaml.safe_load((FOLDER / "rules.yaml").read_text())["groups"]
        for rule in group["rules"]
    }
    tested = {
        found["alertname"]
        for test in yaml.safe_load((FOLDER / "rules_test.yaml").read_text())["tests"]
        for found in test["alert_rule_test"]
        if found["exp_alerts"]
    }
    assert tested == alerts
