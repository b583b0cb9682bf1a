"""What a scrape has, beside what Kueue and HAMi have: nothing is missing without a reason, nothing is called theirs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Final

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from tests.scheduler.api.metrics.hami_families import HAMI_FAMILIES, LEGACY_FAMILIES
from tests.scheduler.api.metrics.kueue_families import COUNTER, GAUGE, KUEUE_FAMILIES

_DOCUMENT: Final = Path(__file__).parents[4] / "docs" / "metrics.md"
_OF_HISTOGRAMS: Final = {"le"}


def families_of(text: str) -> dict[str, Metric]:
    """The families of a scrape by their names."""
    return {
        # The parser takes `_total` off a counter's name, where Kueue may have a gauge of that name too.
        f"{family.name}_total" if family.type == COUNTER else family.name: family
        for family in text_string_to_metric_families(text)
    }


def not_given() -> dict[str, str]:
    """The families that docs/metrics.md says are not there, each with its reason."""
    _, _, table = _DOCUMENT.read_text(encoding="utf-8").partition("## Not given")
    rows = re.findall(r"^\| (`.+?`) \| (.+?) \|$", table, re.MULTILINE)
    return {name: reason for names, reason in rows for name in re.findall(r"`(\w+)`", names)}


def check_families(families: Mapping[str, Metric], empty: AbstractSet[str], *, legacy: bool) -> None:
    """Each of theirs is here with its type and labels or is not given, and what looks like theirs is. `empty` are the
    families of Kueue's that have no sample, which a scrape does not name."""
    kueue = {name: (type_, {*labels, "replica_role"}) for name, (type_, labels) in KUEUE_FAMILIES.items()}
    hami = HAMI_FAMILIES | (LEGACY_FAMILIES if legacy else {})
    theirs = kueue | {name: (GAUGE, {*labels, "zone"}) for name, labels in hami.items()}
    given = set(theirs) - set(not_given()) - empty
    ours = {name for name in families if name.startswith("kueueweb_")}
    document = _DOCUMENT.read_text(encoding="utf-8")
    assert {name for name in ours if f"`{name}`" not in document} == set(), "docs/metrics.md does not name them"
    found = set(families) - ours
    assert found == given, f"missing: {sorted(given - found)}, not theirs: {sorted(found - given)}"
    for name in given:
        type_, labels = theirs[name]
        assert families[name].type == type_, name
        for sample in families[name].samples:
            assert set(sample.labels) - _OF_HISTOGRAMS - {"cluster"} == labels, name
            assert sample.labels.get("replica_role", "standalone") == "standalone"
            assert sample.labels.get("zone", "vGPU") == "vGPU"
