"""`make docs`: the documentation as static pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts import site

# MyST calls functions of Sphinx that its next version will lack.
pytestmark = pytest.mark.filterwarnings("ignore::sphinx.deprecation.RemovedInSphinx11Warning")

DOCS = Path(__file__).resolve().parents[1] / "docs"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site, built once: no test changes it."""
    folder = tmp_path_factory.mktemp("site")
    assert site.main(folder) == 0
    return folder


def test_every_page_is_there_and_can_be_found(built: Path) -> None:
    there = {path.relative_to(built).as_posix() for path in built.rglob("*.html")}
    pages = {path.relative_to(DOCS).with_suffix(".html").as_posix() for path in DOCS.rglob("*.md")} - {"README.html"}
    assert pages | {"index.html", "client.html", "changelog.html", "search.html"} <= there
    assert "borrowinglimit" in (built / "searchindex.js").read_text().lower()


def test_nothing_is_loaded_from_elsewhere(built: Path) -> None:
    page = (built / "index.html").read_text()
    assert re.findall(r'(?:<script[^>]* src|<link[^>]* href|<img[^>]* src)="(?:https?:)?//[^"]*"', page) == []


def test_a_link_without_a_page_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    write = site.write_sources

    def with_a_broken_link(folder: Path) -> None:
        write(folder)
        (folder / "glossary.md").write_text("# Glossary\n\n[there](nowhere.md) and [here](api.md#no-such-heading)\n")

    monkeypatch.setattr(site, "write_sources", with_a_broken_link)
    assert site.main(tmp_path) != 0
    said = capfd.readouterr().err
    assert "nowhere.md" in said
    assert "no-such-heading" in said
