"""README.md: short, and its figures are those of the recordings and of the documents."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Final

from clusters.jobs.registry import KINDS

ROOT: Final = Path(__file__).resolve().parent.parent
README: Final = (ROOT / "README.md").read_text(encoding="utf-8")
MAX_LINES: Final = 90
"""Two screens."""


def recorded(*folders: str) -> int:
    files = [path for folder in folders for path in (ROOT / "tests" / "conformance" / folder).glob("*.json.gz")]
    assert files
    return sum(len(json.loads(gzip.decompress(path.read_bytes()))) for path in files)


def test_it_fits_two_screens() -> None:
    assert len(README.splitlines()) <= MAX_LINES
    assert max(len(line) for line in README.splitlines() if not line.startswith("|")) <= 150


def test_its_figures_are_those_of_the_recordings() -> None:
    for text, count in (
        ("all of {} recorded scenarios", recorded("kueue")),
        ("{} single cycles", recorded("tables")),
        ("{} workload life cycles", recorded("lifecycle")),
        ("Kueue's " + str(len(KINDS)) + ": all of {} recorded cases", recorded("jobs")),
        ("13 vendors: all of {} recorded cases", recorded("hami", "hami-vendors")),
    ):
        assert text.format(f"{count:,}") in README


def test_its_figures_of_the_trace_are_those_of_the_devices_page() -> None:
    page = (ROOT / "docs" / "devices.md").read_text(encoding="utf-8")
    [trace] = re.findall(r"\| ([\d.]+) % \(`bid-price`\), ([\d.]+) % \(FGD\)", README)
    for name, figure in zip(("bid-price", "fgd"), trace, strict=True):
        [measured] = re.findall(rf"^\| {name} \| ([\d.]+) ", page, re.MULTILINE)
        assert f"{float(measured):.1f}" == figure or abs(float(measured) - float(figure)) <= 0.05


def test_its_links_and_pictures_are_there() -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)(?:#[\w-]+)?\)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
